#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>

namespace isthmus::glue {

/// Something that still has to be done once the library finished a call.
class Finishable {
public:
    virtual ~Finishable() = default;
    virtual void finishOnExecutor() = 0;
};

/// A thread of the process that ends works nobody waits for: it writes strided results back, marks
/// futures (whose callbacks may take Python's lock) and lets go of tensors. The library's own
/// thread does none of that, or a Python program could hold up its network. A callback may wait for
/// another future, as those of PowerSGD do: while all its threads are in callbacks, one more works.
class Executor {
public:
    /// Made at the first use; never destroyed, so that no exit order can hurt.
    static Executor& instance();

    /// Starts the thread unless it runs; throws when the system has none to give. Before the call
    /// whose end will be posted, so that post() itself cannot fail.
    void start();

    /// Runs `work->finishOnExecutor()` later and then drops the reference. After stop() the
    /// reference is leaked instead: the interpreter may be gone.
    void post(c10::intrusive_ptr<c10::intrusive_ptr_target> work, Finishable* finish);

    /// Ends the thread when what was posted is done. After `grace` it leaves out what has not begun
    /// and returns false while a callback of the user's still runs: to end the interpreter under it
    /// would end the process. Call it again then.
    bool stop(std::chrono::milliseconds grace);

    /// Around what calls back into the program; no effect on a thread that is none of ours.
    class Callback {
    public:
        Callback();
        ~Callback();
        Callback(const Callback&) = delete;
        Callback& operator=(const Callback&) = delete;
    };

private:
    struct Task {
        c10::intrusive_ptr<c10::intrusive_ptr_target> work;
        Finishable* finish;
    };

    void run();
    void addThread();
    /// Under the lock: nothing that was posted waits for the program's own code.
    void keepGoing();
    static void finish(Task task);

    std::mutex mutex_;
    std::condition_variable wake_;
    std::condition_variable idle_;
    std::deque<Task> tasks_;
    int threads_ = 0;
    int inCallbacks_ = 0;  ///< of those threads
    bool isStopped_ = false;
};

/// From now on isForkedChild() knows. Called before the first communicator is made.
void watchForks();
/// True in a process that was forked after watchForks(): nothing of ours works there.
bool isForkedChild();

}  // namespace isthmus::glue
