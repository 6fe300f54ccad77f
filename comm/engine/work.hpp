#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <vector>

#include <isthmus/status.hpp>
#include <isthmus/types.hpp>

namespace isthmus {

/// The state of one call that its caller holds: pending, then done once, well or badly. Done means
/// that nobody touches the call's buffers any more. Shared by the caller and the Engine.
class Work {
public:
    using Callback = std::function<void(const Status&)>;

    bool isDone() const { return isDone_.load(std::memory_order_acquire); }

    /// Why it failed, or success. Only when isDone().
    const Status& status() const { return status_; }

    /// The rank that an any-source receive met; -1 before, and for anything else. Only when
    /// isDone().
    Rank source() const { return source_; }

    /// Runs `callback` on the engine's thread when done, or at once on this one if it is done
    /// already.
    void onComplete(Callback callback);

    /// Engine only, once. Runs the callbacks.
    void complete(Status status);
    void setSource(Rank source) { source_ = source; }

private:
    std::atomic<bool> isDone_{false};
    Rank source_ = -1;
    Status status_;
    std::mutex mutex_;  // guards callbacks_ against a registration that races completion
    std::vector<Callback> callbacks_;  // guarded by mutex_
};

}  // namespace isthmus
