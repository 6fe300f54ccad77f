#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <isthmus/status.hpp>

#include "scheduler/axis.hpp"
#include "scheduler/placement/shape.hpp"

namespace isthmus::scheduler {

/// What the node that sends most sends, then what all nodes send together, in bytes a step. What
/// enters a node is the same: rings, chains in both directions and all-to-alls are even.
struct NodeCost {
    std::int64_t most = 0;
    std::int64_t sum = 0;

    auto operator<=>(const NodeCost&) const = default;
};

/// Prices of the ways in which a group can be cut, in whole units so that nothing is rounded before
/// the end. `scale` units are a byte: more than one only where an all-to-all does not divide.
///
/// What leaves a node depends only on which ranks are in it: `of[axis]` for each group of tensor,
/// context and data that has members inside and outside (one edge of its ring leaves the node: the
/// members of a node stand together in it); for each pair of pipe neighbours of which one is
/// inside; for each pair of members of an expert group of which one is inside.
struct Weights {
    PerAxis<std::int64_t> of;
    std::int64_t scale = 1;

    std::int64_t bytes(std::int64_t units) const { return (units + scale - 1) / scale; }
};

/// The largest sum that is counted.
inline constexpr std::int64_t kMostInUnits = std::int64_t{1} << 62;

/// kInvalidArgument when bytes are negative, kUnsupported when a sum of them would not fit 62 bits.
Result<Weights> weightsOf(const Degrees& degrees, const AxisBytes& bytes);

/// What leaves each node on each axis, in units of the weights; `nodeOfRank` has a number below
/// `nodes` for each rank of the shape.
std::vector<PerAxis<std::int64_t>> unitsOfNodes(const Shape& shape, const Weights& weights,
                                                std::span<const int> nodeOfRank, int nodes);

/// The same in bytes: each axis rounded up.
std::vector<AxisBytes> bytesOfNodes(const Shape& shape, const AxisBytes& bytes,
                                    std::span<const int> nodeOfRank, int nodes);

/// All axes of a node together, rounded up once, of the node that has most, and of all nodes.
NodeCost costOf(const Shape& shape, const Weights& weights, std::span<const int> nodeOfRank,
                int nodes);

}  // namespace isthmus::scheduler
