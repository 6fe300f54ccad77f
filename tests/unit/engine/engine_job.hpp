#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/algorithm/catalogue.hpp"
#include "comm/base/clock.hpp"
#include "comm/engine/engine.hpp"
#include "comm/transport/inproc/inproc_transport.hpp"
#include "comm/transport/sim/sim_transport.hpp"

namespace isthmus::test {

/// How a call is to run; what the selector would have chosen.
struct Way {
    std::string algorithm;
    int segments = 1;
    int window = 1;
    std::size_t pieceBytes = 0;
};

/// Ranks with an Engine each in one thread, moved by step() alone: inproc inside a node, sim
/// between nodes, one virtual clock for all. No sockets, no threads, no real time.
class EngineJob {
public:
    explicit EngineJob(const std::vector<int>& nodeOfRank, const SimLink& link = {});
    /// Between nodes one of deviceKinds instead of sim, and real time; payloads go directly from
    /// 256 bytes on.
    EngineJob(const std::vector<int>& nodeOfRank, std::string device);
    /// Ranks of a node read each other's inputs, at this process's number.
    struct Reads {
        int pid = 0;
    };
    EngineJob(const std::vector<int>& nodeOfRank, Reads reads);
    ~EngineJob();
    EngineJob(const EngineJob&) = delete;
    EngineJob& operator=(const EngineJob&) = delete;

    int ranks() const { return static_cast<int>(processes_.size()); }
    Engine& engine(Rank rank) { return *processes_[rank].engine; }
    Membership& group(Rank rank) { return *processes_[rank].group; }
    Time now() const { return clock().now(); }

    /// Hands the call to its rank's engine, which does not move yet. `limit` counts from now.
    std::shared_ptr<Work> start(Rank rank, CallRequest call, const Way& way,
                                Time limit = std::chrono::seconds(60));

    /// The same with plans of the caller's.
    std::shared_ptr<Work> startPrepared(Rank rank, CallRequest call,
                                        std::shared_ptr<const PreparedPlans> plans,
                                        Time limit = std::chrono::seconds(60));
    /// `plan` of that rank as the only one of a call.
    std::shared_ptr<PreparedPlans> prepare(Rank rank, Plan plan, Mapping mapping) const;

    /// The plans of such a call.
    std::shared_ptr<const PreparedPlans> prepare(Rank rank, const CallRequest& call,
                                                 const Way& way) const;

    /// Moves one rank once; true when something happened.
    bool step(Rank rank);
    /// A process that is stopped: not moved until it is let go.
    void stop(Rank rank) { processes_[rank].isStopped = true; }
    void letGo(Rank rank) { processes_[rank].isStopped = false; }

    /// Moves all ranks until nothing more happens at this time.
    void settle();
    /// Moves all ranks and, when nothing happens, the clock to the next event. False when that
    /// would be after `until`.
    bool runUntil(const std::function<bool()>& isOver, Time until);
    bool runFor(const std::function<bool()>& isOver, Time limit) {
        return runUntil(isOver, now() + limit);
    }

    Arena& arena(Rank rank) { return *processes_[rank].arena; }
    /// Memory of the rank's arena, which its node peers map; of `elements` floats, each `value`.
    std::span<float> mapped(Rank rank, std::size_t elements, float value);

private:
    struct Process {
        std::unique_ptr<Arena> arena;
        std::unique_ptr<Engine> engine;
        Transport* inside = nullptr;
        Transport* between = nullptr;
        ControlBlock* block = nullptr;
        std::unique_ptr<Membership> group;
        bool isStopped = false;
    };

    bool isReal() const { return !device_.empty(); }
    const Clock& clock() const {
        return isReal() ? static_cast<const Clock&>(steadyClock_) : virtualClock_;
    }
    void makeProcesses();
    void makeProcess(Rank rank);
    std::unique_ptr<Transport> makeBetween(Rank rank);
    std::vector<int> positionsInNode(Rank rank) const;
    void makeGroup(Rank rank);
    Member memberOf(Rank me, Rank rank);

    const Layout layout_;
    const std::string device_;
    const Reads reads_;
    VirtualClock virtualClock_;
    SteadyClock steadyClock_;
    std::vector<InprocFabric> inside_;
    SimFabric between_;
    std::vector<Process> processes_;
};

/// A sum over all ranks, in place.
CallRequest sumOf(std::span<float> buffer);

/// Every element `value`.
bool isFilledWith(std::span<const float> buffer, float value);

}  // namespace isthmus::test
