#pragma once

#include <isthmus/isthmus.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "torch_plugin/csrc/torch_compat.hpp"

namespace isthmus::glue {

/// Lets the library rendezvous over the store of a torch process group.
struct StoreAdapter {
    isthmusStoreCallbacks_t callbacks;
    void* context;  ///< owned by the library once it took the callbacks: `release` frees it
};

/// What the adapter knows of its group.
struct StorePlace {
    int rank = 0;
    int ranks = 1;
    std::chrono::milliseconds limit{0};                  ///< for rank 0 to answer
    std::shared_ptr<const std::atomic<bool>> isLeaving;  ///< once set, waits end and fail
};

/// Its functions may be called from any thread. The adapter uses `store` itself and not a clone of
/// it: a clone is a connection more, whose making can look up names for seconds; and no call here
/// blocks the store.
///
/// A launcher that starts a job again may keep its store, with all that the ranks of before left in
/// it. So the keys of a group begin with a number that rank 0 draws, and that each rank gets from
/// it in answer to a number of its own: what was there before answers no one.
StoreAdapter adaptStore(c10::intrusive_ptr<c10d::Store> store, StorePlace place);

/// Waits for `key`; false when it is not there at `until`, or once `isLeaving`. Throws when the
/// store fails. Asks again and again instead of calling the store's own wait, which keeps the
/// connection from everybody else, cannot be given up early, and writes two lines of warning
/// whenever its time is over.
bool waitInStore(c10d::Store& store, const std::string& key,
                 std::chrono::steady_clock::time_point until,
                 const std::atomic<bool>* isLeaving = nullptr,
                 const std::function<void()>& meanwhile = {});

}  // namespace isthmus::glue
