#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <memory>

namespace isthmus::glue {

class Work;

/// A thread that takes works one after another, in the order in which they were posted.
class WorkThread {
public:
    using Handle = void (*)(c10::intrusive_ptr<Work>) noexcept;

    WorkThread(const char* name, Handle handle);
    /// The thread ends after what was posted; nobody waits for it.
    ~WorkThread();
    WorkThread(const WorkThread&) = delete;
    WorkThread& operator=(const WorkThread&) = delete;

    /// Starts the thread unless it runs; throws when the system has none to give.
    void start();
    /// Starts the thread if need be.
    void post(c10::intrusive_ptr<Work> work);
    /// Nothing is posted that has not been handled.
    bool isIdle() const;
    void waitUntilIdle(std::chrono::steady_clock::time_point deadline) const;

private:
    struct Queue;
    static void run(const std::shared_ptr<Queue>& queue);

    const std::shared_ptr<Queue> queue_;  ///< shared with the thread, which may outlive this
};

/// Works that cannot begin yet because a device has not given their tensors, and all that were
/// issued after them: a group's calls begin in one order on every rank.
class Line {
public:
    Line();

    /// Takes `work` to be begun later; false when nobody waits and it need not: the caller begins
    /// it.
    bool take(const c10::intrusive_ptr<Work>& work, bool mustWait);
    bool isIdle() const { return thread_.isIdle(); }
    void waitUntilIdle(std::chrono::steady_clock::time_point deadline) const {
        thread_.waitUntilIdle(deadline);
    }

private:
    WorkThread thread_;
};

}  // namespace isthmus::glue
