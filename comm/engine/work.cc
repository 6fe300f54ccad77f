#include "comm/engine/work.hpp"

#include <utility>

namespace isthmus {

void Work::onComplete(Callback callback) {
    {
        const std::lock_guard lock(mutex_);
        if (!isDone()) {
            callbacks_.push_back(std::move(callback));
            return;
        }
    }
    callback(status_);
}

void Work::complete(Status status) {
    std::vector<Callback> callbacks;
    status_ = std::move(status);
    {
        const std::lock_guard lock(mutex_);
        callbacks.swap(callbacks_);
        // Release: pairs with isDone(); status_, source_ and the output bytes are visible to who
        // sees it.
        isDone_.store(true, std::memory_order_release);
    }
    for (const Callback& callback : callbacks) callback(status_);
}

}  // namespace isthmus
