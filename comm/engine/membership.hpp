#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <isthmus/status.hpp>

#include "comm/algorithm/catalogue.hpp"
#include "comm/engine/call.hpp"
#include "comm/engine/control_block.hpp"
#include "comm/engine/execution.hpp"
#include "comm/engine/point_to_point.hpp"
#include "comm/engine/quick_call.hpp"
#include "comm/engine/read_choice.hpp"

namespace isthmus {

class Engine;

/// In a question to a rank that is waited for in no collective.
inline constexpr std::uint64_t kNoCall = ~std::uint64_t{0};

/// One rank of a communicator as this process knows it.
struct Member {
    ProcessId process;
    std::string place;                                ///< "node-a pid 812", for messages
    Endpoint* endpoint = nullptr;                     ///< null for myself
    int position = -1;                                ///< in my node; -1: on another node
    int pid = 0;                                      ///< of my node's ranks, as it says itself
    ControlBlock* block = nullptr;                    ///< of my node's ranks, mapped here
    Endpoint::MappedArena arena;                      ///< of my node's ranks
    std::uint64_t probedFor = ~std::uint64_t{0} - 1;  ///< call that it was last asked about
    bool hasAnswered = false;                         ///< since it was first asked about that call
    Time silentSince{0};        ///< first question that it has not answered; 0: none
    bool isSuspect = false;     ///< its silence has been logged
    std::uint64_t entered = 0;  ///< calls it had entered when it last said so
    bool isInside = false;      ///< it was in one of them then
    bool hasAsked = false;      ///< whether I am still there
    bool hasStopped = false;    ///< it touches nothing of this communicator any more
    /// It left in order and did its part in all calls below this number.
    std::uint64_t leftAt = ~std::uint64_t{0};
    Time leftSince = Time::max();  ///< when this process heard of it
};

struct MembershipConfig {
    std::uint64_t id = 0;
    std::string name;
    Rank me = 0;
    std::vector<int> globalRanks;  ///< of each rank, for messages
    Layout layout;
    std::vector<Member> members;
    int cards = 1;         ///< that every process uses at once
    bool canRead = false;  ///< each of my node's ranks the memory of the others: Member::pid
    ReadChoice::Wish reading = ReadChoice::Wish::kMeasure;
    /// What its node's ranks may hope to find in their caches, together.
    std::size_t cacheBytes = std::size_t{32} << 20;
    void* block = nullptr;         ///< memory of my ControlBlock, to be freed at the end
    std::int64_t inlineLimit = 0;  ///< operand bytes that may go inline
    std::size_t inlineBytes = 0;   ///< of each lane, for that
};

/// The Engine's side of a communicator: its members, its calls in order, its one failure.
/// Engine thread only.
class Membership {
public:
    Membership(Engine& engine, MembershipConfig config);
    ~Membership();

    // What Executions need.
    Engine& engine() { return engine_; }
    std::uint64_t id() const { return config_.id; }
    const std::string& name() const { return config_.name; }
    Rank me() const { return config_.me; }
    int ranks() const { return static_cast<int>(config_.members.size()); }
    int myPosition() const { return member(me()).position; }
    const std::vector<Rank>& nodeRanks() const { return nodeRanks_; }
    const Member& member(Rank rank) const { return config_.members[rank]; }
    const Member& onNode(int position) const { return config_.members[nodeRanks_[position]]; }
    ControlBlock& myBlock() { return *member(me()).block; }
    CallSlot& slotOf(int position, int lane) const {
        return *slots_[static_cast<std::size_t>(lane) * nodeRanks_.size() + position];
    }
    /// Of each position of my node.
    std::span<std::byte* const> inlineAreas(int lane) const {
        return std::span(inlineAreas_).subspan(lane * nodeRanks_.size(), nodeRanks_.size());
    }
    std::size_t inlineBytes() const { return config_.inlineBytes; }
    std::size_t cacheBytes() const { return config_.cacheBytes; }
    std::int64_t inlineLimit() const { return config_.inlineLimit; }
    /// Peers may read this of a call that is over here: it stays until the lane serves another.
    void keep(int lane, ScratchPool::Block block);
    bool canRead() const { return config_.canRead; }
    ReadChoice& readChoice() { return readChoice_; }
    std::uint64_t& raisedBase(int lane, int slot, int position);
    std::uint64_t& seenBase(int lane, int slot, int position);
    /// The node peer at `position` has news from this rank: ring() wakes it if it sleeps.
    void noteNews(int position) { bells_[position] = hasBells_ = true; }
    void noteNews();
    void ring();
    /// Before this process sleeps: whose bells it needs. True when those are others than before.
    bool tellAwaited();
    std::string nameOf(Rank rank) const;  ///< "rank 3 (node-b pid 812)", in global numbers
    std::string title(const CallRequest& call, std::uint64_t sequence) const;

    // Calls.
    void submit(std::unique_ptr<CallRequest> call);

    // Quick ones, by whoever holds the token. Between enterQuickly() and its end, by endQuickly()
    // or adopt(), nothing else of this Membership may run.
    Quick enterQuickly(const QuickCall& call);
    /// True when all were there and it is over.
    bool endQuickly();
    /// As awaited(), of the call that has been entered.
    Awaited awaitedQuickly(int cpu);
    /// What was entered goes on as an ordinary call; `call` has everything but its plans.
    void adopt(std::unique_ptr<CallRequest> call);
    void learn(const QuickCall::Kind& kind, CallRequest like, bool mayBeQuick);
    PointToPoint& pointToPoint() { return pointToPoint_; }
    bool progress(Time now);
    bool isIdle() const { return queued_.empty() && active_.empty() && pointToPoint_.isIdle(); }
    Time nextDeadline() const;
    /// False when progress() would find that nothing has come; some loads from the node's memory.
    bool mayMove() const;
    /// True when only transports can bring what some of its calls wait for.
    bool waitsForMessages() const;
    /// Where the ranks are that its calls wait for; also tells them where this one is.
    Awaited awaited(int cpu);

    /// isIdle() as of the last step, from any thread; exact once refreshed after a submission.
    bool wasIdle() const { return wasIdle_.load(std::memory_order_acquire); }
    void refreshIdle() { wasIdle_.store(isIdle(), std::memory_order_release); }

    // News.
    /// `bytes`: of the message, or of the receive that waits for it when tag.from is mine.
    void announced(Rank from, const MessageTag& tag, const CallFingerprint& fingerprint,
                   std::uint64_t bytes);
    /// `wanted`: bytes that it waits for from me, in an all-to-all with counts; else 0.
    void probed(Rank from, std::uint64_t sequence, const CallFingerprint& fingerprint,
                std::uint64_t wanted);
    void answered(Rank from, std::uint64_t entered, bool isInside);
    void asked(Rank from);  ///< whether this rank is still there
    /// `finished`: it has done its part in all calls below this number.
    void told(Rank from, const Status& verdict, std::uint64_t finished);
    void left(Rank from, std::uint64_t finished);
    void lost(const Endpoint& endpoint, const Status& why, Time now);
    void operationFailed(const Status& why, Rank peer);

    /// The first cause wins: fails everything here and tells the others.
    void fail(Status why);
    const Status& failure() const { return failure_; }
    /// What is in flight and who is waited for, in words; for those who wait for all of it.
    std::string unfinished(Time now) const;
    /// failure(), from any thread.
    Status failureNow() const {
        const std::lock_guard lock(failureMutex_);
        return failure_;
    }

    /// Tells the others that this rank is through. The Engine keeps the Membership until node peers
    /// are through too.
    void leave();
    bool isLeaving() const { return isLeaving_; }
    std::uint64_t finished() const { return nextSequence_; }
    bool isForgotten() const;
    void mismatch(const Execution& execution, Rank other, const CallFingerprint& theirs);
    /// False, and a failure, when the one at `position` of my node has another size in mind for a
    /// block between it and me. It has entered this all-to-all with counts.
    bool areBlocksEqual(const Execution& execution, int position);
    /// `rank` has left and never takes part in `call`.
    void failWithout(Rank rank, const CallRequest& call, std::uint64_t sequence);
    /// It was asked whether it is there, and has not answered in good time.
    bool isSilent(Rank rank, Time now) const;
    /// When everything has arrived that `rank` sent before it left; Time::max(): it has not left.
    Time goneAt(Rank rank) const;

private:
    // How often deadlines are looked at.
    static constexpr Time kCheckEvery = std::chrono::milliseconds(2);
    // A closed connection is believed after this: what arrived before it, and the verdict of
    // whoever saw more, come first.
    static constexpr Time kHoldLoss = std::chrono::milliseconds(50);
    // How long buffers of a failed call are kept back for a node peer that does not say that it
    // stopped.
    static constexpr Time kStopPatience = std::chrono::milliseconds(500);
    // Fingerprints of calls that are remembered, for peers that come to them later.
    static constexpr std::size_t kPast = 64;
    struct Past {
        std::uint64_t sequence = ~std::uint64_t{0};
        CallFingerprint fingerprint;
        std::string title;                ///< where the user gave a name
        std::vector<std::uint64_t> sent;  ///< bytes to each rank, of an all-to-all with counts
        std::vector<std::uint64_t> received;
    };
    /// What a rank said of a call that this one has not entered yet.
    struct Early {
        Rank from = 0;
        CallFingerprint fingerprint;
        std::optional<std::uint64_t> sent;    ///< bytes to this rank
        std::optional<std::uint64_t> wanted;  ///< bytes from it
    };
    // A verdict of another rank that does not concern calls which that rank has done its part in.
    struct Held {
        Status verdict;
        Time since{0};
        std::uint64_t below = 0;  ///< calls that may still end well
    };
    struct Departure {
        Rank rank = 0;
        Time since{0};
        Status why;
    };

    /// The quick call at hand.
    struct Entered {
        QuickCalls::Known* known = nullptr;
        const std::byte* input = nullptr;
        std::byte* output = nullptr;
        std::uint64_t sequence = 0;
        std::size_t met = 0;  ///< positions of the node that are in it, from the first on
    };

    void tellCpu(int cpu);
    std::unique_ptr<Execution> takeExecution();
    void disagree(const std::string& title, const CallFingerprint& mine, Rank other,
                  const CallFingerprint& theirs);
    void remember(const Execution& execution);
    std::string titleOf(const Past& past) const;
    bool areBlocksEqual(const Past& past, Rank other, bool isSent, std::uint64_t theirs);
    bool admit();
    bool isAgreed(const Execution& execution);
    bool retire();
    bool advance(Time now);
    std::shared_ptr<Work> takeOut(std::size_t index);
    bool isLaneFree();
    bool checkTime(Time now);
    bool drainFailed(Time now);
    bool checkDeadlines(Time now);
    bool expire(Execution& execution, Time now);
    std::string accusationOf(Rank rank, const Execution& execution, Time now) const;
    void probe(Time now);
    void probe(Rank rank, const Execution* execution, Time now);
    void suspect(Time now);
    void welcomeBack();
    std::string namesOf(const std::vector<Rank>& ranks) const;
    bool settleHeld(Time now);
    std::uint64_t doneBelow() const;
    Time probeEvery() const;
    bool isProbeDue(Time now) const;
    void tellAll(const Status& verdict);

    Engine& engine_;
    MembershipConfig config_;
    std::vector<Rank> nodeRanks_;
    std::vector<CallSlot*> slots_;         ///< by lane, then position
    std::vector<std::byte*> inlineAreas_;  ///< the same
    std::array<ScratchPool::Block, kLanes> kept_{};
    std::vector<std::uint64_t> raised_;
    std::vector<std::uint64_t> seen_;
    std::vector<std::uint64_t> finishedThere_;  ///< as last read from each node peer's block
    std::vector<char> bells_;                   ///< by position: noteNews() since the last ring()
    bool hasBells_ = false;
    PointToPoint pointToPoint_;
    ReadChoice readChoice_;

    std::deque<std::unique_ptr<CallRequest>> queued_;
    std::vector<std::unique_ptr<Execution>> active_;  ///< in order of sequence
    std::vector<std::unique_ptr<Execution>> spare_;   ///< for later calls
    std::uint64_t nextSequence_ = 0;
    QuickCalls quickCalls_;
    Entered quick_;
    std::array<Past, kPast> past_;
    std::multimap<std::uint64_t, Early> early_;  ///< calls that others are in already

    std::atomic<bool> wasIdle_{true};
    Rank firstLeft_ = -1;  ///< of those that left in order, whoever did its part in fewest calls
    bool isLeaving_ = false;
    mutable std::mutex failureMutex_;  ///< guards failure_ for failureNow(); it is written once
    Status failure_;
    Time failedAt_{0};
    std::optional<Held> held_;
    std::vector<Departure> departures_;
    Time overdueSince_{0};        ///< when a call was first seen past its deadline; 0: none is
    std::vector<Rank> returned_;  ///< suspects that have answered, not logged yet
    Time longestSilence_{0};      ///< of returned_
    Time checkedAt_{0};
    Time probedAt_{0};
    std::size_t nextProbed_ = 0;  ///< of those waited for, whose turn it is
};

}  // namespace isthmus
