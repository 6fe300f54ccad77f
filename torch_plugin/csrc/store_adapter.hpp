#pragma once

#include <isthmus/isthmus.h>

#include <chrono>
#include <string>

#include "torch_plugin/csrc/torch_compat.hpp"

namespace isthmus::glue {

/// Lets the library rendezvous over the store of a torch process group.
struct StoreAdapter {
    isthmusStoreCallbacks_t callbacks;
    void* context;  ///< owned by the library once it took the callbacks: `release` frees it
};

/// Its functions may be called from any thread. The adapter uses `store` itself and not a clone of
/// it: a clone is a connection more, whose making can look up names for seconds; and no call here
/// blocks.
StoreAdapter adaptStore(c10::intrusive_ptr<c10d::Store> store);

/// Waits for `key`; false when it is not there at `until`. Throws when the store fails. Asks again
/// and again instead of calling the store's own wait, which keeps the connection from everybody
/// else, cannot be given up early, and writes two lines of warning whenever its time is over.
bool waitInStore(c10d::Store& store, const std::string& key,
                 std::chrono::steady_clock::time_point until);

}  // namespace isthmus::glue
