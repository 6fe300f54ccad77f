#pragma once

#include <vector>

#include "scheduler/cluster/cluster.hpp"

namespace isthmus::scheduler {

/// Ways to leave devices over so that `ranks` are left: off the smallest nodes (whole ones first),
/// so that nodes keep whole blocks of `block` ranks, and off the largest. All different; the
/// cluster itself when it has no more. Empty when it has too few.
std::vector<Cluster> trimmed(const Cluster& cluster, int ranks, int block);

}  // namespace isthmus::scheduler
