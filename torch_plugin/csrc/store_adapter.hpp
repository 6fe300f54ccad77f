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

/// The adapter keeps `store` and, from its first use on, a clone of it: a wait on the clone does
/// not hold up torch's own use of the connection. Its functions may be called from any thread.
StoreAdapter adaptStore(c10::intrusive_ptr<c10d::Store> store);

/// Waits for `key`; false when it is not there at `until`. Throws when the store fails.
bool waitInStore(c10d::Store& store, const std::string& key,
                 std::chrono::steady_clock::time_point until);

}  // namespace isthmus::glue
