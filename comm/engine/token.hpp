#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "comm/base/futex.hpp"

namespace isthmus {

/// The right to drive the Engine: one thread has it at a time.
class EngineToken {
public:
    bool tryTake() {
        if (isHeld_.load(std::memory_order_relaxed)) return false;
        // Acquire: pairs with release(); the new owner sees all that the old one wrote.
        if (isHeld_.exchange(true, std::memory_order_acquire)) return false;
        owner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
        return true;
    }

    void release() {
        owner_.store(std::thread::id(), std::memory_order_relaxed);
        isHeld_.store(false, std::memory_order_seq_cst);
        tellSleepers();
    }

    bool isHeld() const { return isHeld_.load(std::memory_order_seq_cst); }

    bool isMine() const {
        return owner_.load(std::memory_order_relaxed) == std::this_thread::get_id();
    }

    /// True when a caller waits for the token: the progress thread then lets go.
    bool isWanted() const { return sleepers_.load(std::memory_order_relaxed) > 0; }

    /// Wakes callers that wait, to look again: a call is done or the token is free.
    void tellSleepers() {
        // Sequentially consistent with the count in waitForNews(): either it sees the news, or we
        // see it waiting.
        if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
        news_.fetch_add(1, std::memory_order_seq_cst);
        futexWakeAll(news_);
    }

    /// Registers as waiting, then sleeps until news unless `isOver()` already.
    template <typename Predicate>
    void waitForNews(const Predicate& isOver, std::chrono::nanoseconds limit) {
        sleepers_.fetch_add(1, std::memory_order_seq_cst);
        const std::uint32_t seen = news_.load(std::memory_order_seq_cst);
        for (int i = 0; i < kYields && !isOver() && isHeld_.load(std::memory_order_seq_cst); ++i) {
            std::this_thread::yield();
        }
        if (!isOver() && isHeld_.load(std::memory_order_seq_cst)) futexWait(news_, seen, limit);
        sleepers_.fetch_sub(1, std::memory_order_relaxed);
    }

private:
    static constexpr int kYields =
        50;  // limits.md 2a: yields before a futex cost little and save its 20 us

    std::atomic<bool> isHeld_{false};
    std::atomic<std::uint32_t> news_{0};
    std::atomic<int> sleepers_{0};
    std::atomic<std::thread::id> owner_{};
};

}  // namespace isthmus
