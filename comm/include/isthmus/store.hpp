#pragma once

#include <chrono>
#include <cstddef>
#include <string_view>
#include <vector>

#include <isthmus/status.hpp>

namespace isthmus {

/// Opaque bytes: addresses, keys, blobs.
using Bytes = std::vector<std::byte>;

/// A small key-value store that all ranks of a job reach while a Communicator is made.
/// Thread: any, calls may block up to their deadline. Values are written once.
class Store {
public:
    virtual ~Store() = default;

    /// Publishes `value` under `key`. kMismatch when the key holds other bytes already.
    virtual Status set(std::string_view key, const Bytes& value) = 0;

    /// Waits until `key` exists and returns its bytes. kTimeout after `limit`.
    virtual Result<Bytes> get(std::string_view key, std::chrono::milliseconds limit) = 0;

    /// True when `key` exists now. Does not wait for it.
    virtual Result<bool> has(std::string_view key) = 0;

    /// Forgets `key`; no error when it is not there.
    virtual Status erase(std::string_view key) = 0;
};

}  // namespace isthmus
