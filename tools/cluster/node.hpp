#pragma once

#include <cstdint>

#include "tools/cluster/rate.hpp"

namespace isthmus::cluster {

struct NodePlan {
    int node = 0;
    int nodes = 0;
    int mtu = 1500;
    CardRates rates;
    std::uint64_t sharedMemoryBytes = 0;  ///< of /dev/shm; 0: the kernel's default
    int goFd = -1;                        ///< readable at its end once the node's cable is there
    int reportFd = -1;
};

/// The life of a node's pid 1: gives the node its identity, reports, then reaps until it is killed.
[[noreturn]] void liveAsNode(const NodePlan& plan);

/// Reaps children for ever; returns when `lifelineFd` (unless -1) comes to its end.
void reapUntil(int lifelineFd);

}  // namespace isthmus::cluster
