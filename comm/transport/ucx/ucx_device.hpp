#pragma once

#include <memory>
#include <string>

#include "comm/transport/rma/rma_device.hpp"

namespace isthmus {

struct UcxOptions {
    /// The shared object: a path, or a name that the dynamic linker looks up or has loaded already.
    std::string library = "libucp.so.0";
    /// UCX's own transports, as in UCX_TLS (ucx_info -d lists them).
    std::string transports = "^tcp";
    /// UCX's devices, as in UCX_NET_DEVICES; empty: what UCX chooses.
    std::string devices;
    /// For tests: transfers that UCX emulates by messages, too.
    bool emulatesTransfers = false;
};

/// What is known of UCX in this process, for people. kUnsupported: why it cannot be used, and how
/// to get it. Thread: any.
Result<std::string> describeUcx(const std::string& library);

/// UCP through one worker (OpenUCX API 1.13 and newer), in error mode PEER where UCX can: messages
/// are eager active messages, a put is known to be visible by a flush after it. Shared memory of
/// UCX 1.13 notices no ends: such peers get messages only, and so do those to which UCX knows
/// no way that moves bytes by itself: emulated puts are copied as messages are, and UCX 1.13 ends
/// the process when somebody is gone whose put it wants to answer (ucp_put_handler). What UCX logs
/// goes to our log. kUnsupported: as above. kConfiguration: UCX does not know the transports or
/// devices.
///
/// Registering is left to UCX, which caches it and watches for unmapped memory where that costs
/// anything. UCX offers no way to take access back from a peer that has a key: deregister alone
/// does not, disconnect does.
Result<std::unique_ptr<RmaDevice>> makeUcxDevice(const UcxOptions& options);

}  // namespace isthmus
