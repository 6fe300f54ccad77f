#include "torch_plugin/csrc/work_thread.hpp"

#include <pthread.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "torch_plugin/csrc/work.hpp"

namespace isthmus::glue {

struct WorkThread::Queue {
    const char* name;
    Handle handle;
    std::mutex mutex;
    std::condition_variable wake;
    std::condition_variable idle;
    std::deque<c10::intrusive_ptr<Work>> works;
    std::atomic<std::size_t> unhandled{0};
    bool isStarted = false;
    bool isEnding = false;
};

WorkThread::WorkThread(const char* name, Handle handle) : queue_(std::make_shared<Queue>()) {
    queue_->name = name;
    queue_->handle = handle;
}

WorkThread::~WorkThread() {
    const std::lock_guard lock(queue_->mutex);
    queue_->isEnding = true;
    queue_->wake.notify_one();
}

void WorkThread::start() {
    const std::lock_guard lock(queue_->mutex);
    if (queue_->isStarted) return;
    std::thread([queue = queue_] { run(queue); }).detach();
    queue_->isStarted = true;
}

void WorkThread::post(c10::intrusive_ptr<Work> work) {
    start();
    const std::lock_guard lock(queue_->mutex);
    queue_->works.push_back(std::move(work));
    queue_->unhandled.fetch_add(1);
    queue_->wake.notify_one();
}

bool WorkThread::isIdle() const {
    return queue_->unhandled.load() == 0;
}

void WorkThread::waitUntilIdle(std::chrono::steady_clock::time_point deadline) const {
    std::unique_lock lock(queue_->mutex);
    queue_->idle.wait_until(lock, deadline, [this] { return isIdle(); });
}

void WorkThread::run(const std::shared_ptr<Queue>& queue) {
    pthread_setname_np(pthread_self(), queue->name);
    std::unique_lock lock(queue->mutex);
    while (true) {
        queue->wake.wait(lock, [&] { return queue->isEnding || !queue->works.empty(); });
        if (queue->works.empty()) return;
        c10::intrusive_ptr<Work> work = std::move(queue->works.front());
        queue->works.pop_front();
        lock.unlock();
        queue->handle(std::move(work));
        lock.lock();
        if (queue->unhandled.fetch_sub(1) == 1) queue->idle.notify_all();
    }
}

Line::Line() : thread_("isthmus-line", &Work::beginLater) {}

bool Line::take(const c10::intrusive_ptr<Work>& work, bool mustWait) {
    if ((!mustWait && isIdle()) || isForkedChild()) return false;
    thread_.post(work);
    return true;
}

}  // namespace isthmus::glue
