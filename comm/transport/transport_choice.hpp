#pragma once

#include <string>
#include <string_view>

#include <isthmus/status.hpp>

namespace isthmus {

/// What ISTHMUS_TRANSPORTS asks for.
struct TransportChoice {
    bool sharesMemory = false;  ///< shm, inside a node
    std::string between;        ///< "tcp", "ucx", "ofi"; empty: nothing reaches other nodes
    std::string device;         ///< what stands behind the @ of `between`
};

/// Reads a list such as "shm,tcp": "auto" is shm and tcp; "^shm" is auto without shm;
/// "shm,ucx@tcp" names a device of a transport. kConfiguration: what is wrong with it.
Result<TransportChoice> parseTransports(std::string_view text);

}  // namespace isthmus
