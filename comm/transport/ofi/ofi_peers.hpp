#pragma once

#include <deque>
#include <optional>
#include <unordered_map>

#include "comm/transport/ofi/ofi_operations.hpp"

namespace isthmus {

/// What a device says of itself, for others to connect.
struct OfiPlace {
    std::string provider;
    Bytes name;                ///< in the provider's format
    Bytes host;                ///< of whom only processes of one node reach; else empty
    std::uint64_t ground = 0;  ///< 8 bytes that whoever connects may read
    Bytes groundKey;
};

Bytes toBytes(const OfiPlace& place);
Result<OfiPlace> ofiPlaceFrom(std::span<const std::byte> data);

struct OfiPeer {
    fi_addr_t address = FI_ADDR_UNSPEC;
    std::uint64_t ground = 0;
    RmaKey groundKey{};
    std::deque<OfiOperation*> waiting;  ///< for room at the provider, in order
    int inFlight = 0;                   ///< the provider has them
    Status failure;
    bool isFailureTold = false;
    std::optional<RmaDevice::Ending> ending;
    bool isFlushing = false;
    bool isFlushed = false;
    bool isRemoved = false;  ///< from the provider's table

    bool takes() const { return failure.ok() && !ending.has_value(); }
};

using OfiPeers = std::unordered_map<RmaPeer, OfiPeer>;

}  // namespace isthmus
