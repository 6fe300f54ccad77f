#pragma once

#include <cstdint>
#include <memory>

#include "comm/base/clock.hpp"
#include "comm/transport/frame_endpoint.hpp"
#include "comm/transport/transport.hpp"

namespace isthmus {

/// One direction between two processes.
struct SimLink {
    double bytesPerSecond = 1e9;
    Time latency = std::chrono::microseconds(10);
    std::size_t roomBytes = 256 * 1024;  ///< sent and not read yet: then the sender must wait
};

/// What else may happen, drawn from the fabric's seed.
struct SimChaos {
    double shortMoves = 0;  ///< share of reads and writes that move a few bytes only
    Time longestDelay{0};   ///< added to each packet's latency, uniformly
};

struct SimHub;

/// Connects Transports in virtual time: no sockets, no threads, the same run for the same seed. The
/// driver runs every transport until nothing happens, then moves the clock to the least
/// nextEvent(). One thread. The clock outlives everything.
class SimFabric {
public:
    SimFabric(const Clock& clock, std::uint64_t seed, const SimLink& link = {},
              const SimChaos& chaos = {}, const FlowLimits& limits = {});
    ~SimFabric();
    SimFabric(const SimFabric&) = delete;
    SimFabric& operator=(const SimFabric&) = delete;

    /// Destroying the transport without close() looks to its peers as if the process had died.
    std::unique_ptr<Transport> makeTransport(const ProcessId& self, TransportListener& listener);

    /// Of the direction `from` to `to`, for what is sent from now on.
    void setLink(const ProcessId& from, const ProcessId& to, const SimLink& link);
    /// From now on nothing that `from` sends reaches `to`; neither is told.
    void cut(const ProcessId& from, const ProcessId& to);

private:
    std::shared_ptr<SimHub> hub_;
};

}  // namespace isthmus
