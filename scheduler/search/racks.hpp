#pragma once

#include <vector>

#include "scheduler/cluster/cluster.hpp"
#include "scheduler/traffic/node_cost.hpp"

namespace isthmus::scheduler {

/// Which group of the level each node is in, numbered in the order of the nodes; level 0 is the
/// outermost that has a name in Node::at.
std::vector<int> groupOfNodes(const Cluster& cluster, std::size_t level);

/// Gives the ranks of whole nodes, then of whole groups, other seats of the same sizes, so that
/// less leaves the dearest rack, then all racks, then pods. No node pays other than before.
std::vector<int> arrangeRacks(const Cluster& cluster, const Shape& shape, const Weights& weights,
                              std::vector<int> nodeOfRank);

}  // namespace isthmus::scheduler
