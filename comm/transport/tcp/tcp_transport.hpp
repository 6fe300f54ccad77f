#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "comm/base/knobs.hpp"
#include "comm/base/sleep_set.hpp"
#include "comm/bootstrap/host_port.hpp"
#include "comm/bootstrap/job_key.hpp"
#include "comm/transport/frame_endpoint.hpp"
#include "comm/transport/negotiate.hpp"
#include "comm/transport/transport.hpp"

namespace isthmus {

inline constexpr std::size_t kMostTcpCards = 8;

struct TcpOptions {
    struct Card {
        std::string interfaceName;  ///< for messages and link-local IPv6
        std::string address;        ///< numeric IPv4 or IPv6; the only one that is listened on
    };
    std::vector<Card> cards;  ///< 1 to kMostTcpCards; peers meet over the first with the first ...
    PortRange ports;
    std::string congestion = "cubic";  ///< "system": leave the system's
    std::chrono::milliseconds userTimeout{10'000};
    std::chrono::milliseconds connectLimit{30'000};
    /// For strangers to say who they are.
    std::chrono::milliseconds handshakeLimit{5'000};
    FlowLimits limits;
    Purpose purpose = Purpose::kTcpFrames;  ///< of the connections

    /// Everything but the cards and the ports (the port range belongs to all listeners).
    static TcpOptions fromOptions(const Options& options);
};

/// Listens on the cards' addresses. Fails with kConfiguration when it cannot: names address, port
/// and, where readable, the process that holds it. Two processes use as many cards towards each
/// other as both have, in their order; a card that is lost is done without.
///
/// Each process connects to its peer for what it sends, so two connections serve a pair and nobody
/// has to decide whose attempt wins. Nothing else than isthmus processes with `key` gets in.
Result<std::unique_ptr<Transport>> makeTcpTransport(const TcpOptions& options,
                                                    const ProcessId& self, const JobKey& key,
                                                    SleepSet& sleepSet,
                                                    TransportListener& listener);

}  // namespace isthmus
