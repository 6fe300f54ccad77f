#pragma once

#include <c10/util/intrusive_ptr.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

namespace isthmus::glue {

class Work;

/// The first meeting of a group's ranks, on a thread of its own: whoever makes a group waits for
/// nobody, and ranks that never call anything are found by those that do. What is called meanwhile
/// waits here and is begun afterwards, in order.
class Meeting {
public:
    using Clock = std::chrono::steady_clock;

    /// Runs `meet`, which returns when the ranks have met or cannot, and keeps what it holds alive
    /// until it is over. Throws when the system has no thread to give.
    void begin(std::function<void()> meet);
    /// There is nobody to meet.
    void skip() { isOver_.store(true, std::memory_order_release); }
    bool isOver() const { return isOver_.load(std::memory_order_acquire); }
    /// Takes `work` to be begun later; false when the meeting is over: the caller begins it.
    bool take(const c10::intrusive_ptr<Work>& work);
    void waitUntil(Clock::time_point deadline);

private:
    void beginWorks();

    std::atomic<bool> isOver_{false};
    std::mutex mutex_;
    std::condition_variable over_;
    std::deque<c10::intrusive_ptr<Work>> works_;
};

}  // namespace isthmus::glue
