#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include <isthmus/status.hpp>
#include <isthmus/store.hpp>

#include "comm/bootstrap/host_port.hpp"
#include "comm/bootstrap/job_key.hpp"

namespace isthmus {

/// What isthmusUniqueId holds: where the maker's store is and the key to it. As secret as the job.
struct UniqueId {
    static constexpr std::size_t kBytes = 128;
    /// As many IPv4 and IPv6 addresses as fit beside magic, port and key.
    static constexpr std::size_t kMostAddresses = 5;

    std::vector<std::string> addresses;  ///< numeric; the best to use first, loopback last
    std::uint16_t port = 0;
    JobKey key;

    std::array<std::byte, kBytes> bytes() const;
    /// kInvalidArgument when these bytes are no id (all zero, or of another version).
    static Result<UniqueId> from(std::span<const std::byte, kBytes> bytes);
};

/// Starts a store in this process and returns the id by which others find it. The store lives until
/// the ranks of the id have come and gone and another id is made, or the process ends. `interfaces`
/// is ISTHMUS_INTERFACE: only these are listened at; empty: all.
Result<UniqueId> makeUniqueId(std::string_view interfaces, PortRange ports);

/// Connects to the store of an id. Tries its addresses until one is the maker's, at most `limit`.
struct UniqueIdStore {
    std::unique_ptr<Store> store;
    std::string localAddress;  ///< ours on the way to the maker
};
Result<UniqueIdStore> connectTo(const UniqueId& id, std::chrono::milliseconds limit);

}  // namespace isthmus
