#pragma once

#include <chrono>
#include <memory>

#include "comm/transport/rma/rma_device.hpp"
#include "comm/transport/tcp/tcp_transport.hpp"

namespace isthmus {

struct RmaOptions {
    /// Where peers find each other and prove the job key, and how the end of one is seen. No
    /// message takes that way.
    TcpOptions door;
    /// Shorter messages are not worth a registration, a put and word of its end.
    std::uint64_t directBytes = 64 * 1024;
    /// How long a cancelled operation may wait for its memory before the connection is given up.
    std::chrono::milliseconds recallLimit{2'000};
};

/// Reaches peers through `device`: frames travel as messages, large payloads by put into the
/// memory of their receives. Two processes open to each other when both have made an endpoint and
/// have proved the job key to one another over TCP connections, whose end is the end of the peer.
/// kConfiguration: no door on that card.
Result<std::unique_ptr<Transport>> makeRmaTransport(std::unique_ptr<RmaDevice> device,
                                                    RmaOptions options, const ProcessId& self,
                                                    const JobKey& key, SleepSet& sleepSet,
                                                    TransportListener& listener);

}  // namespace isthmus
