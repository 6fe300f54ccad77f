#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "comm/base/sleep_set.hpp"
#include "comm/transport/transport.hpp"
#include "tests/support/sanitized.hpp"

namespace isthmus {

/// Keeps what a transport tells.
class Recorder final : public TransportListener {
public:
    struct Announcement {
        MessageTag tag;
        CallFingerprint fingerprint;
        std::uint64_t bytes;
    };

    void announced(Endpoint&, const MessageTag& tag, const CallFingerprint& fingerprint,
                   std::uint64_t bytes) override {
        announcements.push_back({tag, fingerprint, bytes});
        if (onAnnounced) onAnnounced(tag);
    }
    void control(Endpoint&, std::span<const std::byte> message) override {
        controls.emplace_back(message.begin(), message.end());
    }
    void lost(Endpoint& from, const Status& why) override { losses.push_back({from.state(), why}); }

    struct Loss {
        Endpoint::State state;
        Status why;
    };
    std::vector<Announcement> announcements;
    std::vector<Bytes> controls;
    std::vector<Loss> losses;
    std::function<void(const MessageTag&)> onAnnounced;
};

/// One process-in-spirit of a test: a transport and what it told.
struct Member {
    ProcessId id;
    SleepSet sleepSet;
    Recorder recorder;
    std::unique_ptr<Transport> transport;  // null once killed
};

/// A few transports of one kind in this process that can reach each other, driven by one thread.
class TransportWorld {
public:
    virtual ~TransportWorld() = default;

    virtual Time now() const = 0;
    /// Lets time pass when nothing happened.
    virtual void idle() = 0;

    Member& at(int position) { return *members_[position]; }
    Endpoint& link(int from, int to);
    /// Runs every transport once.
    int step();
    /// Runs until `isDone` or, returning false, for about `limit`.
    bool runUntil(const std::function<bool()>& isDone,
                  std::chrono::milliseconds limit = test::kPatience);
    /// Runs until nothing happens any more.
    void settle();
    /// False: cards move bytes, and cancelled operations wait until they do not.
    virtual bool freesAtOnce() const { return true; }
    /// Closes a transport in order; where that takes the others, they go on meanwhile.
    void leave(int position, std::chrono::milliseconds limit);
    /// As if the process had been killed.
    void kill(int position) { members_[position]->transport.reset(); }

protected:
    void add(std::unique_ptr<Member> member) { members_.push_back(std::move(member)); }
    /// The least of all transports.
    Time nextEvent() const;
    /// For worlds whose transports need something that dies first.
    void removeAll() { members_.clear(); }
    static ProcessId idOf(int position);

private:
    std::vector<std::unique_ptr<Member>> members_;
};

/// `kind`: one of worldKinds().
std::unique_ptr<TransportWorld> makeWorld(const std::string& kind, int members);
/// "inproc", "tcp", "shm" and "sim", and all deviceKinds.
std::vector<std::string> worldKinds();
/// Those in which processes may die.
std::vector<std::string> enduringWorldKinds();

/// Worlds over devices; null: no such kind.
std::unique_ptr<TransportWorld> makeRmaWorld(const std::string& kind, int members);

/// A world of real time.
class WallWorld : public TransportWorld {
public:
    Time now() const override { return clock_.now(); }
    void idle() override { std::this_thread::yield(); }

private:
    SteadyClock clock_;
};

/// An operation with its memory and what became of it.
class Posted {
public:
    /// `parts`: into how many pieces the memory is cut.
    Posted(const MessageTag& tag, std::size_t bytes, int parts = 1);
    Posted(const Posted&) = delete;

    bool isDone() const { return completions == 1; }
    bool isGood() const { return completions == 1 && status.ok(); }
    /// Fills the memory so that every (seed, position) differs.
    Posted& fill(std::uint64_t seed);
    /// The first position that does not hold what fill(seed) writes; -1: none.
    std::ptrdiff_t firstWrong(std::uint64_t seed) const;
    /// True when the bytes around the memory were left alone.
    bool isGuardIntact() const;

    Operation operation;
    int completions = 0;
    Status status;
    std::function<void()> onDone;

private:
    static constexpr std::size_t kGuardBytes = 64;
    std::size_t bytes_;
    std::vector<std::byte> memory_;
};

MessageTag tagOf(std::uint64_t sequence, std::uint64_t communicator = 7);

}  // namespace isthmus
