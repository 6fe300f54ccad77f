#pragma once

#include <chrono>
#include <memory>

#include "comm/base/sleep_set.hpp"
#include "comm/bootstrap/job_key.hpp"
#include "comm/memory/arena.hpp"
#include "comm/transport/frame_endpoint.hpp"
#include "comm/transport/transport.hpp"

namespace isthmus {

struct ShmOptions {
    std::chrono::milliseconds connectLimit{30'000};
    /// For strangers to say who they are.
    std::chrono::milliseconds handshakeLimit{5'000};
    FlowLimits limits;
};

/// Reaches processes of the same node: bytes travel through rings in memfd memory of `arena`, whose
/// descriptor goes to the peer over an abstract UNIX socket (unix(7)) once both have proved the job
/// key. Such sockets belong to one network namespace and vanish with the process, so nothing is
/// ever left behind. endpoint() refuses peers of other nodes with kUnsupported. `arena` outlives
/// the transport.
Result<std::unique_ptr<Transport>> makeShmTransport(const ShmOptions& options,
                                                    const ProcessId& self, const JobKey& key,
                                                    SleepSet& sleepSet, TransportListener& listener,
                                                    Arena& arena);

}  // namespace isthmus
