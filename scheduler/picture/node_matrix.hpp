#pragma once

#include <span>
#include <vector>

#include "scheduler/traffic/node_cost.hpp"

namespace isthmus::scheduler {

/// Bytes that each node sends to each other in a step: entry from x nodes + to. Rings go through
/// the nodes in their order; a row sums up to what bytesOfNodes has, but for a part of a byte of
/// each pair of an all-to-all that does not divide.
std::vector<double> nodeMatrix(const Shape& shape, const AxisBytes& bytes,
                               std::span<const int> nodeOfRank, int nodes);

}  // namespace isthmus::scheduler
