// Who drives the Engine, and how it waits.
#include <immintrin.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <mutex>

#include "comm/engine/engine.hpp"

namespace isthmus {

namespace {

// Looks (each about 0.2 us) before the first sched_yield(2): limits.md 2a. A yield costs 1 to 5 us
// when another process of this CPU takes it, so it is worth it only when that process is one that
// we wait for (kLooksHere); while those that we wait for run on other CPUs, it is worth looking for
// longer than their switch takes (kLooksElsewhere). After about 200 yields in vain the wait is
// long, and sleeping is cheaper.
constexpr int kLooksHere = 1;
constexpr int kLooksElsewhere = 100;
constexpr int kLooksAlone = 100;
constexpr int kLooksShared = 2;
constexpr int kYields = 200;

// A yield that takes longer than this ran somebody else: the core is shared, whatever the count of
// ranks says (other jobs; emulated nodes). Believed for the next kSharedFor yields.
constexpr Time kYieldAlone = std::chrono::microseconds(3);
constexpr int kSharedFor = 500;

// A yield that takes this long ran somebody who computes, not somebody who waits: the next one
// would cost as much, while a sleeper is woken into the middle of their time slice.
constexpr Time kYieldBusy = std::chrono::microseconds(150);

// No rank's turn takes as long (Execution, kTurnBytes): it was somebody who has nothing to do with
// us (data loaders, another job), and yields would cost a time slice each. A sleeper's wake-up
// takes the processor away from them, so the next waits sleep at once: a few after one such yield,
// which may have been an accident, four times as many whenever the next one is lost too.
constexpr Time kYieldLost = std::chrono::milliseconds(1);
constexpr int kFirstLost = 8;
constexpr int kMostLost = 512;

// While calls need their node's memory alone, a look is a few loads; transports get theirs at every
// so many looks, and at least this often.
constexpr int kLooksPerStep = 8;
constexpr Time kStepEvery = std::chrono::microseconds(20);

// A quick call (QuickCalls) looks this often before it wakes those that may sleep: mostly all come
// at once, and then one fence serves its beginning and its end.
constexpr int kLooksBeforeBells = 8;
// Transports get their turn after so many quick calls, and when one of them takes longer than this.
constexpr int kQuickInARow = 16;
constexpr Time kQuickFor = std::chrono::microseconds(50);

std::atomic<bool> hasForked{false};

}  // namespace

// From the first Engine on: a process that forks before it uses the library loses nothing.
void Engine::watchForks() {
    static std::once_flag once;
    std::call_once(once, [] {
        ::pthread_atfork(nullptr, nullptr,
                         [] { hasForked.store(true, std::memory_order_relaxed); });
    });
}

bool Engine::isForked() {
    return hasForked.load(std::memory_order_relaxed);
}

void Engine::take() {
    disarm();
}

void Engine::release() {
    const bool mustDrive = hasWork();
    token_.release();
    if (!config_.hasThread) return;
    callerTurns_.fetch_add(1, std::memory_order_relaxed);
    if (isResting_.load(std::memory_order_relaxed)) {
        sleepSet_.wake();
    } else if (mustDrive || !submitted_.isEmpty() ||  // it may have come while we held the token
               isDozing_.load(std::memory_order_seq_cst)) {
        nudge();
    }
}

void Engine::nudge() {
    nudges_.fetch_add(1, std::memory_order_seq_cst);
    if (isNapping_.load(std::memory_order_seq_cst)) futexWakeAll(nudges_);
}

void Engine::withToken(const std::function<void()>& act) {
    std::atomic<bool> isOver{false};
    run(
        [&] {
            act();
            isOver.store(true, std::memory_order_release);
        },
        [&] { return isOver.load(std::memory_order_acquire); }, Time::max());
}

void Engine::run(const std::function<void()>& begin, const std::function<bool()>& isOver,
                 Time until) {
    if (token_.isMine()) {
        begin();
        return;
    }
    if (!token_.tryTake()) {
        submit(begin);  // the owner does it at its next step
        waitUntil(isOver, until);
        return;
    }
    take();
    if (!submitted_.isEmpty()) takeSubmitted();  // tasks that found the token held came first
    begin();
    drive(isOver, until, false);
    release();
}

void Engine::poll() {
    if (token_.isMine() || !token_.tryTake()) return;
    take();
    step();
    release();
}

bool Engine::waitUntil(const std::function<bool()>& isOver, Time until) {
    if (isOver()) return true;
    if (token_.isMine()) return false;  // a callback that waits would wait for itself
    while (true) {
        if (token_.tryTake()) {
            take();
            const bool isDone = drive(isOver, until, false);
            release();
            return isDone;
        }
        if (isOver()) return true;
        const Time left = until - now();
        if (left <= Time{0}) return false;
        token_.waitForNews(isOver, std::min<Time>(left, std::chrono::milliseconds(10)));
        if (isOver()) return true;
    }
}

bool Engine::drive(const std::function<bool()>& isOver, Time until, bool yieldsToCallers) {
    int quiet = 0;
    while (!isOver()) {
        if (yieldsToCallers && (token_.isWanted() || isStopping_.load(std::memory_order_relaxed)))
            return false;
        if (look(quiet)) {
            quiet = 0;
            continue;
        }
        if (idle(quiet, until)) continue;
        if (yieldsToCallers) return false;
        if (now() >= until) return isOver();
        sleep(isOver, until);
    }
    return true;
}

// A step, or what of it can bring news.
bool Engine::look(int quiet) {
    const bool isDue = quiet > 0 && quiet % kLooksPerStep == 0;
    if (quiet == 0) lookedAt_ = now();
    if (isDue || lookedAt_ - steppedAt_ >= kStepEvery || !submitted_.isEmpty()) return step();
    const bool needsTransports =
        std::any_of(groups_.begin(), groups_.end(),
                    [](const Membership* group) { return group->waitsForMessages(); });
    return needsTransports ? step() : moveGroups(false);
}

int Engine::looksBeforeYield() {
    const int cpu = ::sched_getcpu();
    auto awaited = Awaited::kNobody;
    for (Membership* group : groups_) {
        if (!group->isIdle()) awaited = std::max(awaited, group->awaited(cpu));
    }
    return looksFor(awaited);
}

int Engine::looksFor(Awaited awaited) const {
    if (awaited == Awaited::kHere) return kLooksHere;
    if (awaited == Awaited::kElsewhere || awaited == Awaited::kNobody) return kLooksElsewhere;
    const bool isShared = sharedFor_ > 0 || isCrowded();
    return isShared ? kLooksShared : kLooksAlone;
}

bool Engine::idle(int& quiet, Time until) {
    const int looks = looksBeforeYield();
    if (++quiet < looks) {
        _mm_pause();
        return true;
    }
    if (quiet >= looks + kYields || lostFor_ > 0) {
        lostFor_ = std::max(lostFor_ - 1, 0);
        quiet = 0;
        return false;
    }
    // One more look before sleeping: what it computed may be what this rank waits for.
    if (yield() > kYieldBusy) quiet = looks + kYields;
    return lookedAt_ < until;
}

// Lets others run. What that took says how to wait from now on.
Time Engine::yield() {
    ::sched_yield();
    const Time after = now();
    const Time took = after - lookedAt_;  // with a look that found nothing: 0.2 us
    lookedAt_ = after;
    sharedFor_ = took > kYieldAlone ? kSharedFor : std::max(sharedFor_ - 1, 0);
    lostSpan_ = took <= kYieldLost ? 0 : std::clamp(4 * lostSpan_, kFirstLost, kMostLost);
    lostFor_ = lostSpan_;
    return took;
}

Quick Engine::runQuickly(Membership& group, const QuickCall& call) {
    if (token_.isMine() || !token_.tryTake()) return Quick::kNotNow;
    take();
    if (!submitted_.isEmpty() || ++quickInARow_ >= kQuickInARow) {
        quickInARow_ = 0;
        step();
    }
    Quick way = isClosed_ ? Quick::kNotNow : group.enterQuickly(call);
    if (way == Quick::kEntered && waitQuickly(group)) {
        ++counters_.finishedByCaller;
        way = Quick::kDone;
    }
    if (way != Quick::kEntered) release();
    return way;
}

// Nothing else moves meanwhile, so not for long.
bool Engine::waitQuickly(Membership& group) {
    for (int looks = 0; looks < kLooksBeforeBells; ++looks) {
        if (group.endQuickly()) return true;
        _mm_pause();
    }
    group.ring();
    if (lostFor_ > 0) return false;
    lookedAt_ = now();
    const Time until = lookedAt_ + kQuickFor;
    for (int quiet = 1; quiet < kYields && lookedAt_ < until; ++quiet) {
        const int looks = looksFor(group.awaitedQuickly(::sched_getcpu()));
        if (quiet < looks) {
            _mm_pause();
        } else if (yield() > kYieldBusy || lostFor_ > 0) {
            return group.endQuickly();
        }
        if (group.endQuickly()) return true;
    }
    return false;
}

void Engine::finishQuickly(Membership& group, std::unique_ptr<CallRequest> call, Time until) {
    const std::shared_ptr<Work> work = call->work;
    group.adopt(std::move(call));
    drive([&work] { return work->isDone(); }, until, false);
    release();
}

bool Engine::arm() {
    isAsleep_.store(true, std::memory_order_relaxed);
    isArmed_ = true;
    tellAwaited();
    std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the one in submit()
    const bool isQuiet =
        std::all_of(transports_.begin(), transports_.end(),
                    [](const auto& transport) { return transport->prepareSleep(); });
    if (isQuiet && !step() && !tellAwaited()) return true;
    disarm();
    return false;
}

// True when it is something else than before.
bool Engine::tellAwaited() {
    bool isNew = false;
    for (Membership* const group : groups_) isNew |= group->tellAwaited();
    return isNew;
}

void Engine::disarm() {
    if (!isArmed_) return;
    isArmed_ = false;
    isAsleep_.store(false, std::memory_order_relaxed);
    for (const auto& transport : transports_) transport->wakeUp();
}

void Engine::sleep(const std::function<bool()>& isOver, Time until) {
    // Before arm() looks a last time: news that the progress thread takes from sleepSet_ is passed
    // on.
    isDriverAsleep_.store(true, std::memory_order_seq_cst);
    if (arm()) {
        // Again: what the last look changed may be no news to the Engine, yet end the wait.
        if (!isOver()) {
            const Time next = std::min(nextEvent(), until);
            ++counters_.sleeps;
            sleepSet_.wait(next == Time::max() ? std::chrono::hours(1) : next - now());
            steppedAt_ = Time{0};  // transports may have woken us: theirs is the next look
        }
        disarm();
    }
    isDriverAsleep_.store(false, std::memory_order_relaxed);
}

Time Engine::nextEvent() const {
    Time next = Time::max();
    for (const auto& transport : transports_) next = std::min(next, transport->nextEvent());
    for (const Membership* group : groups_) next = std::min(next, group->nextDeadline());
    return next;
}

bool Engine::hasWork() const {
    if (!submitted_.isEmpty()) return true;
    return std::any_of(groups_.begin(), groups_.end(),
                       [](const Membership* group) { return !group->isIdle(); });
}

Engine::Counters Engine::counters() const {
    return counters_;
}

}  // namespace isthmus
