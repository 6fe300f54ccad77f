#include "torch_plugin/csrc/executor.hpp"

#include <c10/util/Exception.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <utility>

namespace isthmus::glue {
namespace {

std::atomic<bool> isChild{false};

}  // namespace

void watchForks() {
    // Relaxed: the child has this one thread only when the flag is set.
    static const int registered =
        pthread_atfork(nullptr, nullptr, [] { isChild.store(true, std::memory_order_relaxed); });
    static_cast<void>(registered);
}

bool isForkedChild() {
    return isChild.load(std::memory_order_relaxed);
}

Executor& Executor::instance() {
    static auto* const executor = new Executor();
    return *executor;
}

void Executor::start() {
    const std::lock_guard lock(mutex_);
    if (isRunning_ || isStopped_) return;
    std::thread([this] { run(); }).detach();
    isRunning_ = true;
}

void Executor::post(c10::intrusive_ptr<c10::intrusive_ptr_target> work, Finishable* finish) {
    const std::lock_guard lock(mutex_);
    if (isStopped_) {
        static_cast<void>(work.release());
        return;
    }
    tasks_.push_back({std::move(work), finish});
    wake_.notify_one();
}

bool Executor::stop(std::chrono::milliseconds grace) {
    std::unique_lock lock(mutex_);
    isStopped_ = true;
    wake_.notify_one();
    const bool isOver = idle_.wait_for(lock, grace, [this] { return !isRunning_; });
    for (Task& task : tasks_) static_cast<void>(task.work.release());
    tasks_.clear();
    return isOver;
}

void Executor::finish(Task task) {
    try {
        task.finish->finishOnExecutor();
    } catch (const std::exception& error) {
        // A callback of the user's on a future; whoever waits for the work has its result.
        LOG(ERROR) << "isthmus: a callback at the end of a call failed: " << error.what();
    }
    task.work.reset();  // may destroy tensors: not under the lock
}

void Executor::run() {
    pthread_setname_np(pthread_self(), "isthmus-done");
    std::unique_lock lock(mutex_);
    while (true) {
        wake_.wait(lock, [this] { return isStopped_ || !tasks_.empty(); });
        if (tasks_.empty()) break;
        Task task = std::move(tasks_.front());
        tasks_.pop_front();
        lock.unlock();
        finish(std::move(task));
        lock.lock();
    }
    isRunning_ = false;
    idle_.notify_all();
}

}  // namespace isthmus::glue
