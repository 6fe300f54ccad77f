#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "scheduler/search/watch.hpp"
#include "scheduler/traffic/node_cost.hpp"

namespace isthmus::scheduler {

/// What branch and bound found.
struct ExactAnswer {
    /// Better than what it was given; empty when there is no such assignment.
    std::optional<std::vector<int>> nodeOfRank;
    /// Nothing was left out: the answer, or what it was given, is the best of all.
    bool isComplete = false;
    int items = 0;  ///< ranks, or blocks of them that no better placement can cut
    std::uint64_t looked = 0;
};

/// How many items branch and bound takes.
inline constexpr int kMostItems = 32;

/// Items that a search for something at most `known` has: the groups of axes that would cost a node
/// more than `known.most` when cut are whole.
Degrees wholeAxes(const Shape& shape, const Weights& weights, const std::vector<int>& sizes,
                  const NodeCost& known);

/// Looks through all assignments to nodes of these sizes for one that costs less than `known`
/// (units of the weights). Nothing is looked at when there are more than kMostItems items, at most
/// `limit` partial nodes otherwise. `bound` is lowerBound().
ExactAnswer branchAndBound(const Shape& shape, const Weights& weights,
                           const std::vector<int>& sizes, const NodeCost& known,
                           const NodeCost& bound, std::uint64_t limit, const Watch& watch);

}  // namespace isthmus::scheduler
