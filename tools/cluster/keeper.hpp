#pragma once

#include <cstdint>

#include "tools/cluster/rate.hpp"

namespace isthmus::cluster {

struct KeeperPlan {
    int nodes = 0;
    int mtu = 1500;
    CardRates rates;
    std::uint64_t sharedMemoryBytes = 0;
    bool isInUserNamespace = false;
    unsigned userId = 0;  ///< of outside
    unsigned groupId = 0;
    int reportFd = -1;
    int lifelineFd = -1;  ///< a socket; its end is the maker's death; a byte, sent back, cuts loose
};

/// The life of a cluster's pid 1: makes the bridge and the nodes, reports, then keeps them. When it
/// dies, of whatever cause, the kernel kills all inside and the network goes with the last of them.
[[noreturn]] void liveAsKeeper(const KeeperPlan& plan);

}  // namespace isthmus::cluster
