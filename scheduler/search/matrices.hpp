#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "scheduler/search/watch.hpp"
#include "scheduler/traffic/node_cost.hpp"

namespace isthmus::scheduler {

/// What a rank sends on each axis at these degrees; nothing when they are not possible (memory,
/// what does not divide).
using VolumesOf = std::function<std::optional<AxisBytes>(const Degrees&)>;

/// How many ways each axis is split at each level of a regular tree, outermost first: the entries
/// of a level multiply to its members, those of an axis to its degree (arXiv 2110.10548 calls it a
/// parallelism matrix).
using LevelMatrix = std::vector<Degrees>;

/// One point: degrees and where they are.
struct MatrixPoint {
    Degrees degrees;
    LevelMatrix matrix;
    AxisBytes bytes;
    /// Bytes of a node, then of a group of each level above, outwards.
    std::vector<NodeCost> costs;
};

struct MatrixAnswer {
    std::vector<MatrixPoint> best;  ///< one for each of the best degrees, the best first
    std::uint64_t points = 0;       ///< looked at: all there are unless stopped
    bool isComplete = true;
};

/// Looks at every matrix of every allowed degrees (0 is free, otherwise fixed) on a tree of this
/// shape ({8, 16, 128}: 8 racks of 16 nodes of 128 devices). The cost is that of a node first, then
/// of a group of each level outwards. Of equal ones the first in a fixed sequence stays.
/// kInvalidArgument when bytes do not fit.
Result<MatrixAnswer> everyMatrix(const std::vector<int>& shape, const Degrees& wanted,
                                 const VolumesOf& volumes, int keep, const Watch& watch);

/// Node of each rank for a matrix: nodes of the tree in their order.
std::vector<int> nodesOf(const LevelMatrix& matrix);

}  // namespace isthmus::scheduler
