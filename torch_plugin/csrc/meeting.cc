#include "torch_plugin/csrc/meeting.hpp"

#include <pthread.h>

#include <thread>
#include <utility>

#include "torch_plugin/csrc/work.hpp"

namespace isthmus::glue {

void Meeting::begin(std::function<void()> meet) {
    // Detached: the end of a program must not wait for ranks that never come. `meet` owns this.
    std::thread([this, meet = std::move(meet)] {
        pthread_setname_np(pthread_self(), "isthmus-meet");
        meet();
        beginWorks();
    }).detach();
}

void Meeting::beginWorks() {
    std::unique_lock lock(mutex_);
    while (!works_.empty()) {
        c10::intrusive_ptr<Work> work = std::move(works_.front());
        works_.pop_front();
        lock.unlock();
        Work::beginLater(std::move(work));
        lock.lock();
    }
    isOver_.store(true, std::memory_order_release);
    over_.notify_all();
}

bool Meeting::take(const c10::intrusive_ptr<Work>& work) {
    if (isOver() || isForkedChild()) return false;
    const std::lock_guard lock(mutex_);
    if (isOver()) return false;
    works_.push_back(work);
    return true;
}

void Meeting::waitUntil(Clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    over_.wait_until(lock, deadline, [this] { return isOver(); });
}

}  // namespace isthmus::glue
