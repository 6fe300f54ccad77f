// The thread that drives the Engine when no caller does.
#include <chrono>

#include "comm/engine/engine.hpp"

namespace isthmus {

namespace {

// After a blocking call the progress thread looks now and then for news by itself, unasked: so a
// loop of blocking calls never has to mark itself asleep, and peers never pay a system call to wake
// it. Quiet for kRestAfter: it truly sleeps.
constexpr Time kWatchEvery = std::chrono::milliseconds(2);
constexpr int kRestAfterWatches = 10;

// While one caller has slept as the driver for so many looks there is nothing to look for: whoever
// drives hears of everything, and says when it lets go. The time is for nothing but safety.
constexpr int kDozeAfterWatches = 10;
constexpr Time kDozeFor = std::chrono::seconds(1);

}  // namespace

void Engine::progressLoop() {
    while (!isStopping_.load(std::memory_order_relaxed)) {
        if (!watch()) continue;
        disarm();
        ++counters_.progressTurns;
        drive([this] { return !hasWork(); }, Time::max(), true);
        const bool isTired = hasWork() && !token_.isWanted();
        if (isTired) {
            rest();
        } else {
            releaseProgress();
        }
    }
}

// Returns true, as the owner, when there is something to drive. Between looks nothing is armed.
bool Engine::watch() {
    int quiet = 0;
    int inVain = 0;
    std::uint64_t seenTurns = callerTurns_.load(std::memory_order_relaxed);
    while (!isStopping_.load(std::memory_order_relaxed)) {
        const std::uint32_t seen = nudges_.load(std::memory_order_seq_cst);
        const std::uint64_t turns = callerTurns_.load(std::memory_order_relaxed);
        const bool isCalm = turns == seenTurns;
        seenTurns = turns;
        if (!token_.isWanted() && token_.tryTake()) {
            inVain = 0;
            isProgressDriving_ = true;
            disarm();
            step();
            if (hasWork()) return true;
            quiet = isCalm ? quiet + 1 : 0;
            if (quiet >= kRestAfterWatches) {
                rest();
                quiet = 0;
                continue;
            }
            releaseProgress();
            if (!submitted_.isEmpty()) continue;  // it came while we held the token
        } else {
            inVain = isCalm && isDriverAsleep_.load(std::memory_order_relaxed) ? inVain + 1 : 0;
        }
        nap(seen, inVain >= kDozeAfterWatches);
    }
    return false;
}

// Until a nudge later than `seen`, or for a while.
void Engine::nap(std::uint32_t seen, bool mayDoze) {
    isNapping_.store(true, std::memory_order_seq_cst);
    isDozing_.store(mayDoze, std::memory_order_seq_cst);
    // Either we see that the token is free, or who frees it sees that we doze.
    futexWait(nudges_, seen, mayDoze && token_.isHeld() ? kDozeFor : kWatchEvery);
    isDozing_.store(false, std::memory_order_relaxed);
    isNapping_.store(false, std::memory_order_relaxed);
}

void Engine::releaseProgress() {
    isProgressDriving_ = false;
    token_.release();
}

// Gives the token back and sleeps until news.
void Engine::rest() {
    isResting_.store(true, std::memory_order_seq_cst);
    const bool isQuiet = arm();
    const Time next = nextEvent();
    if (isQuiet) ++counters_.sleeps;
    releaseProgress();
    if (isQuiet) sleepSet_.wait(next == Time::max() ? std::chrono::hours(1) : next - now());
    isResting_.store(false, std::memory_order_relaxed);
    // epoll wakes one of its waiters; if that was this thread, the one that drives must hear of it
    // too.
    if (isDriverAsleep_.load(std::memory_order_seq_cst)) sleepSet_.wake();
}

}  // namespace isthmus
