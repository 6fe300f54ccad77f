#include "python/csrc/callbacks.hpp"

#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace isthmus::python {

namespace {

constexpr Milliseconds kOthersLetGo{2000};

struct Callback {
    Request request;
    nb::callable function;
};

struct Queue {
    std::mutex mutex;
    std::condition_variable changed;
    // Guarded by mutex.
    std::deque<Callback*> done;
    bool isStopping = false;
    // Guarded by Python's lock.
    std::thread thread;
    pid_t process = 0;  ///< that the thread is of: forked children have none
};

/// Never destroyed: the library's thread may outlive static objects.
Queue& queue() {
    static auto* const one = new Queue();
    return *one;
}

void call(Callback* callback) {
    const nb::gil_scoped_acquire locked;
    const std::unique_ptr<Callback> mine(callback);
    try {
        // The outcome is there and only has to be fetched; threads that use the request at this
        // moment let go soon.
        mine->request.pending->settle(kOthersLetGo);
        mine->function(mine->request);
    } catch (nb::python_error& error) {
        error.discard_as_unraisable("isthmus: a callback of a request");
    }
}

void loop() {
    Queue& all = queue();
    std::unique_lock lock(all.mutex);
    for (;;) {
        all.changed.wait(lock, [&] { return all.isStopping || !all.done.empty(); });
        if (all.isStopping) return;
        Callback* const next = all.done.front();
        all.done.pop_front();
        lock.unlock();
        call(next);
        lock.lock();
    }
}

/// On the library's thread, or on the caller's when the call is over.
void enqueue(isthmusResult_t, const char*, void* context) {
    Queue& all = queue();
    const std::lock_guard lock(all.mutex);
    all.done.push_back(static_cast<Callback*>(context));
    all.changed.notify_one();
}

}  // namespace

void callWhenDone(const Request& request, nb::callable function) {
    Queue& all = queue();
    if (all.thread.joinable() && all.process != getpid()) all.thread.detach();
    if (!all.thread.joinable()) {
        all.thread = std::thread(&loop);
        all.process = getpid();
    }
    auto callback = std::make_unique<Callback>(Callback{request, std::move(function)});
    request.pending->onComplete(&enqueue, callback.get());
    static_cast<void>(callback.release());
}

void stopCallbacks() {
    Queue& all = queue();
    if (!all.thread.joinable() || all.process != getpid()) return;
    {
        const std::lock_guard lock(all.mutex);
        all.isStopping = true;
        all.changed.notify_one();
    }
    const nb::gil_scoped_release released;
    all.thread.join();
}

}  // namespace isthmus::python
