#pragma once

#include <limits>
#include <vector>

#include "scheduler/traffic/node_cost.hpp"

namespace isthmus::scheduler {

/// What no placement of the shape on nodes of these sizes goes below, in units of the weights. Any
/// assignment of ranks to seats is meant, not only orderly ones.
///
/// A set X of s ranks meets the group of a rank x on axis a in some number l of members; x answers
/// for weight / l of what that group costs when it is cut, for nothing when it is whole. The mean
/// of the logs of these numbers, summed over the axes, is at most log s (H(X) is at least the sum
/// of what each coordinate has left when the others are known: Han's inequality), so the convex
/// hulls of the shares, filled up to log s along the steepest slopes, are below every placement.
///
/// More is not looked for once the bound of the dearest node has reached `enough`.
NodeCost lowerBound(const Shape& shape, const Weights& weights, const std::vector<int>& sizes,
                    std::int64_t enough = std::numeric_limits<std::int64_t>::max());

/// What any node of `size` ranks pays at least.
std::int64_t leastOfNode(const Shape& shape, const Weights& weights, int size);

/// What some node pays at least when a group of `axis` is not in one node as a whole.
std::int64_t costOfSplit(const Shape& shape, const Weights& weights, const std::vector<int>& sizes,
                         Axis axis);

}  // namespace isthmus::scheduler
