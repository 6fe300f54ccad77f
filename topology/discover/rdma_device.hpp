#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topology/model/fact.hpp"

namespace isthmus {

/// One port of an RDMA device.
struct RdmaPort {
    std::string device;  ///< "mlx5_0"
    int port = 0;
    bool isActive = false;
    std::string linkLayer;  ///< "InfiniBand" or "Ethernet"
    std::string netDevice;  ///< the network device of the same card, where there is one
    int numaNode = -1;
    Fact<std::int64_t> bitsPerSecond;

    bool operator==(const RdmaPort&) const = default;
};

/// Lists the RDMA devices under `sysfs`, by name; none is no error.
std::vector<RdmaPort> discoverRdmaPorts(const std::string& sysfs = "/sys");

}  // namespace isthmus
