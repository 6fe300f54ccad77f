#pragma once

#include <atomic>

namespace isthmus {

/// Many threads push, one takes everything. Intrusive: `T` has a `T* nextQueued` that is the
/// queue's while it is in it. push is one compare-and-swap and wait-free in practice; takeAll is
/// one exchange (Treiber's stack, reversed).
template <typename T>
class MpscQueue {
public:
    /// True when the queue was empty before: whoever takes may have to be woken.
    bool push(T* item) {
        T* head = head_.load(std::memory_order_relaxed);
        do {
            item->nextQueued = head;
            // Release: pairs with the acquire of takeAll, which then sees the item's fields.
        } while (!head_.compare_exchange_weak(head, item, std::memory_order_release,
                                              std::memory_order_relaxed));
        return head == nullptr;
    }

    bool isEmpty() const { return head_.load(std::memory_order_relaxed) == nullptr; }

    /// Items in the order of push, linked by nextQueued; null when there are none.
    T* takeAll() {
        T* item = head_.exchange(nullptr, std::memory_order_acquire);
        T* first = nullptr;
        while (item != nullptr) {
            T* const next = item->nextQueued;
            item->nextQueued = first;
            first = item;
            item = next;
        }
        return first;
    }

private:
    std::atomic<T*> head_{nullptr};
};

}  // namespace isthmus
