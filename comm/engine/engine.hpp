#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include <isthmus/status.hpp>

#include "comm/base/clock.hpp"
#include "comm/base/knobs.hpp"
#include "comm/base/mpsc_queue.hpp"
#include "comm/base/sleep_set.hpp"
#include "comm/engine/execution.hpp"
#include "comm/engine/membership.hpp"
#include "comm/engine/token.hpp"
#include "comm/memory/arena.hpp"
#include "comm/memory/scratch_pool.hpp"
#include "comm/transport/transport.hpp"

namespace isthmus {

struct EngineConfig {
    ProcessId self;
    const Clock* clock = nullptr;  ///< outlives the Engine
    Arena* arena = nullptr;        ///< outlives the Engine
    std::size_t cacheBytes = std::size_t{32}
                             << 20;  ///< of the last level; larger jobs store around it
    std::size_t scratchBytes = std::size_t{256} << 20;  ///< kept for later calls
    int cpus = 1;                                       ///< that this process may use
    bool hasThread = true;  ///< false: only step() and waiting callers drive (tests, event loops)
};

/// The single owner that advances everything of this process by step(). It is a token, not a
/// thread: a caller that waits takes it and drives; otherwise the progress thread does, and sleeps
/// when there is nothing to do.
class Engine final : public TransportListener {
public:
    explicit Engine(EngineConfig config);
    ~Engine() override;

    /// Before the first communicator; the Engine owns it.
    void addTransport(std::unique_ptr<Transport> transport);
    const std::vector<std::unique_ptr<Transport>>& transports() const { return transports_; }
    SleepSet& sleepSet() { return sleepSet_; }
    const EngineConfig& config() const { return config_; }
    /// Ranks of this node are more than the processors that they may use together, as one of its
    /// communicators found. Any thread.
    void noteCrowded() { isCrowded_.store(true, std::memory_order_relaxed); }
    bool isCrowded() const { return isCrowded_.load(std::memory_order_relaxed); }

    /// Something to run on the engine, in order of submission. Any thread.
    struct Task {
        std::function<void()> run;
        Task* nextQueued = nullptr;
    };
    void submit(std::function<void()> run);

    /// Runs `act` on this thread as the engine's owner, then lets others drive. Any thread but the
    /// engine's.
    void withToken(const std::function<void()>& act);

    /// Runs `begin` as withToken() does, then waits as waitUntil() does: one turn for a blocking
    /// call.
    void run(const std::function<void()>& begin, const std::function<bool()>& isOver, Time until);
    /// A whole call in one go where nothing is in the way. kEntered: this thread has the token
    /// still, and finishQuickly() must follow.
    Quick runQuickly(Membership& group, const QuickCall& call);
    /// Waits for its peers as for those of any call.
    void finishQuickly(Membership& group, std::unique_ptr<CallRequest> call, Time until);
    /// True inside callbacks: waiting there would wait for itself.
    bool isOnThisThread() const { return token_.isMine(); }

    /// Drives or sleeps until `isOver` or `until`. False when time ran out first, or when called
    /// inside a callback.
    bool waitUntil(const std::function<bool()>& isOver, Time until);
    bool wait(const Work& work, Time until) {
        return waitUntil([&work] { return work.isDone(); }, until);
    }

    /// Moves everything once if nobody else drives. Any thread.
    void poll();
    /// Moves everything once. The caller holds the token.
    bool step();
    /// When step() must run again even if nothing arrives; Time::max(): never. The caller holds the
    /// token.
    Time nextEvent() const;

    Time now() const { return config_.clock->now(); }

    // For Memberships, on the engine's thread.
    void add(Membership& group);
    /// From now on the Engine owns it, until its node's ranks have left too.
    void retire(std::unique_ptr<Membership> group);
    Arena& arena() { return *config_.arena; }
    void finish(Work& work, Status status);
    std::uint64_t mappedOffset(const std::byte* buffer, std::size_t bytes) const;
    std::size_t cacheBytes() const { return config_.cacheBytes; }
    Result<ScratchPool::Block> takeScratch(std::size_t bytes) { return scratchPool_->take(bytes); }
    void giveScratch(ScratchPool::Block block) { scratchPool_->give(block); }
    StepOperation* takeOperation();
    void giveOperation(StepOperation* operation) { freeOperations_.push_back(operation); }
    void sendVerdict(const Membership& group, Rank to, const Status& verdict,
                     std::uint64_t finished);
    void sendProbe(const Membership& group, Rank to, std::uint64_t sequence,
                   const CallFingerprint& fingerprint, std::uint64_t wanted);
    void sendLeave(const Membership& group, Rank to, std::uint64_t finished);
    void sendAnswer(const Membership& group, Rank to, std::uint64_t entered, bool isInside);
    void sendAsk(const Membership& group, Rank to);

    void announced(Endpoint& from, const MessageTag& tag, const CallFingerprint& fingerprint,
                   std::uint64_t bytes) override;
    void control(Endpoint& from, std::span<const std::byte> message) override;
    void lost(Endpoint& from, const Status& why) override;

    /// Endpoints that lead to other nodes, and their bytes since the process started. Engine's
    /// thread.
    void noteBetweenNodes(Endpoint& endpoint) { betweenNodes_.insert(&endpoint); }
    WireCounters wireCounters() const;

    struct Counters {
        std::uint64_t steps = 0;
        std::uint64_t sleeps = 0;         ///< of whoever drove
        std::uint64_t progressTurns = 0;  ///< times the progress thread took the token
        std::uint64_t finishedByProgress =
            0;  ///< calls that were done while the progress thread drove
        std::uint64_t finishedByCaller = 0;
    };
    Counters counters() const;

    /// The process ends in order: tells peers so, as far as this rank has done its part, and closes
    /// the transports. Waits for nobody but for room to say it, at most until `until`.
    void farewell(Time until);

    /// After fork(2), in the child: nothing of this Engine may be touched any more.
    static bool isForked();

private:
    static void watchForks();
    void take();
    void release();
    bool drive(const std::function<bool()>& isOver, Time until, bool yieldsToCallers);
    bool look(int quiet);
    bool moveGroups(bool all);
    bool idle(int& quiet, Time until);
    int looksBeforeYield();
    int looksFor(Awaited awaited) const;
    Time yield();
    bool waitQuickly(Membership& group);
    void sleep(const std::function<bool()>& isOver, Time until);
    bool arm();
    bool tellAwaited();
    void disarm();
    void progressLoop();
    void releaseProgress();
    bool watch();
    void nap(std::uint32_t seen, bool mayDoze);
    void rest();
    void nudge();
    bool hasWork() const;
    void takeSubmitted();
    void forget();
    Membership* groupOf(std::uint64_t id);
    void sendControl(const Membership& group, Rank to, Bytes message);
    void keepNews(Endpoint& from, std::uint64_t id, std::function<void(Membership&)> tell);

    EngineConfig config_;
    SleepSet sleepSet_;
    std::vector<std::unique_ptr<Transport>> transports_;
    std::unique_ptr<ScratchPool> scratchPool_;
    std::vector<std::unique_ptr<StepOperation>> operations_;
    std::vector<StepOperation*> freeOperations_;
    std::vector<Membership*> groups_;
    std::vector<std::unique_ptr<Membership>> leaving_;
    std::map<std::uint64_t, Membership*> groupsById_;

    struct EarlyNews {
        std::uint64_t group = 0;
        std::function<void(Membership&)> tell;
    };
    std::deque<EarlyNews> early_;  ///< about communicators that are not made here yet
    struct LeftGroup {
        Rank me = 0;
        std::uint64_t finished = 0;
    };
    std::map<std::uint64_t, LeftGroup> left_;
    std::deque<std::uint64_t> leftInOrder_;

    std::set<Endpoint*> betweenNodes_;
    MpscQueue<Task> submitted_;
    EngineToken token_;
    std::atomic<bool> isStopping_{false};
    std::atomic<bool> isAsleep_{
        false};  ///< somebody is, or is about to be, in sleepSet_: tasks must wake it
    std::atomic<bool> isResting_{
        false};  ///< the progress thread is in sleepSet_; else it looks now and then
    std::atomic<bool> isDriverAsleep_{false};
    std::atomic<bool> isNapping_{false};
    std::atomic<bool> isDozing_{false};  ///< napping until whoever has the token lets go
    std::atomic<std::uint32_t> nudges_{0};
    std::atomic<std::uint64_t> callerTurns_{0};
    std::atomic<bool> isCrowded_{false};
    bool isArmed_ = false;            ///< owner only: transports think that we sleep
    bool isProgressDriving_ = false;  ///< owner only: the progress thread has the token
    bool isClosed_ = false;           ///< owner only: after farewell()
    Time steppedAt_{0};               ///< owner only: when the last step began
    Time lookedAt_{0};                ///< owner only: that, or when the last yield ended
    int sharedFor_ = 0;               ///< owner only: yields for which the core counts as shared
    int lostFor_ = 0;                 ///< owner only: waits that still sleep at once
    int lostSpan_ = 0;                ///< owner only: of how many, after the last yield
    int quickInARow_ = 0;             ///< owner only: calls since the last step
    Counters counters_;
    std::thread progress_;
};

}  // namespace isthmus
