#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <isthmus/status.hpp>

namespace isthmus {

/// What ISTHMUS_TRANSPORTS asks for.
struct TransportChoice {
    /// One that goes between nodes.
    struct Between {
        std::string name;    ///< "tcp", "ucx", "ofi"
        std::string device;  ///< what stands behind its @; empty: nothing

        bool operator==(const Between&) const = default;
    };

    bool sharesMemory = false;     ///< shm, inside a node
    std::vector<Between> between;  ///< the best first; empty: nothing reaches other nodes
};

/// Reads a list such as "shm,ucx,tcp", in which those between nodes stand in order of preference:
/// "auto" is shm and tcp; "^shm" is auto without shm; "shm,ucx@tcp" names a device of a transport,
/// "tcp@eth0+eth1" cards as ISTHMUS_INTERFACE does. kConfiguration: what is wrong with it.
Result<TransportChoice> parseTransports(std::string_view text);

}  // namespace isthmus
