#pragma once

#include <memory>
#include <string>

#include "comm/transport/rma/rma_device.hpp"

namespace isthmus {

struct OfiOptions {
    /// libfabric's name, such as "shm", "tcp", "tcp;ofi_rxm" or "efa". Empty: the first that
    /// reaches other nodes, in libfabric's order, without those kept for tests.
    std::string provider;
    /// Of the card, for providers whose addresses are those of IP. Empty: the provider chooses.
    std::string address;
    /// Puts are confirmed by a read behind them even where the provider can tell of delivery.
    bool confirmsByReading = false;
};

/// Opens the libfabric of this machine (libfabric.so.1, 1.17 or newer) and a reliable datagram
/// endpoint of it. kUnsupported: built without its headers, no library, or no provider that can
/// do what is needed; the text says which, and how to get it. kConfiguration: no such card.
Result<std::unique_ptr<RmaDevice>> makeOfiDevice(const OfiOptions& options);

/// For people: version and providers, as in "libfabric 1.17: tcp;ofi_rxm, shm". Fails as
/// makeOfiDevice.
Result<std::string> describeOfi();

}  // namespace isthmus
