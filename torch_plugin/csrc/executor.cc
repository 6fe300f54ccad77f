#include "torch_plugin/csrc/executor.hpp"

#include <c10/util/Exception.h>
#include <c10/util/Logging.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <system_error>
#include <utility>

namespace isthmus::glue {
namespace {

std::atomic<bool> isChild{false};

/// Callbacks that wait for each other deeper than this are left to their timeouts.
constexpr int kMostThreads = 64;
thread_local bool isExecutorThread = false;

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
    if (threads_ > 0 || isStopped_) return;
    addThread();
}

void Executor::addThread() {
    std::thread([this] { run(); }).detach();
    ++threads_;
}

void Executor::keepGoing() {
    if (tasks_.empty() || inCallbacks_ < threads_ || threads_ >= kMostThreads) return;
    try {
        addThread();
    } catch (const std::system_error&) {
        // The system has no thread to give: what was posted waits for the callback to return.
    }
}

Executor::Callback::Callback() {
    if (!isExecutorThread) return;
    Executor& executor = instance();
    const std::lock_guard lock(executor.mutex_);
    ++executor.inCallbacks_;
    executor.keepGoing();
}

Executor::Callback::~Callback() {
    if (!isExecutorThread) return;
    Executor& executor = instance();
    const std::lock_guard lock(executor.mutex_);
    --executor.inCallbacks_;
}

void Executor::post(c10::intrusive_ptr<c10::intrusive_ptr_target> work, Finishable* finish) {
    const std::lock_guard lock(mutex_);
    if (isStopped_) {
        static_cast<void>(work.release());
        return;
    }
    tasks_.push_back({std::move(work), finish});
    wake_.notify_one();
    keepGoing();
}

bool Executor::stop(std::chrono::milliseconds grace) {
    std::unique_lock lock(mutex_);
    isStopped_ = true;
    wake_.notify_all();
    const bool isOver = idle_.wait_for(lock, grace, [this] { return threads_ == 0; });
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
    isExecutorThread = true;
    std::unique_lock lock(mutex_);
    while (true) {
        const bool isOneTooMany = threads_ - inCallbacks_ > 1;
        if (!isOneTooMany) wake_.wait(lock, [this] { return isStopped_ || !tasks_.empty(); });
        if (tasks_.empty()) break;
        Task task = std::move(tasks_.front());
        tasks_.pop_front();
        lock.unlock();
        finish(std::move(task));
        lock.lock();
    }
    --threads_;
    idle_.notify_all();
}

}  // namespace isthmus::glue
