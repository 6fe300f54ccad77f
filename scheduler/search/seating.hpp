#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/traffic/node_cost.hpp"

namespace isthmus::scheduler {

/// An assignment of ranks to nodes that can be changed rank by rank and knows what each node pays
/// meanwhile: a move changes the two nodes that it is between, no other.
class Seating {
public:
    /// `shape` and `weights` outlive it.
    Seating(const Shape& shape, const Weights& weights, std::vector<int> nodeOfRank, int nodes);

    const Shape& shape() const { return shape_; }
    const std::vector<int>& nodeOfRank() const { return nodeOfRank_; }
    int nodeOf(int rank) const { return nodeOfRank_[static_cast<std::size_t>(rank)]; }
    int nodes() const { return static_cast<int>(units_.size()); }
    std::int64_t units(int node) const { return units_[static_cast<std::size_t>(node)]; }
    const std::vector<int>& ranksOf(int node) const {
        return ranks_[static_cast<std::size_t>(node)];
    }

    /// In units of the weights.
    NodeCost cost() const;
    /// The first of the nodes that pay most.
    int hottest() const;

    /// Two ranks change seats.
    void swap(int one, int other);
    /// Ranks of one node change seats with as many of another.
    void swap(std::span<const int> some, std::span<const int> others);

    /// Members of groups that were looked at: what the changes so far took.
    std::uint64_t work() const { return work_; }

private:
    void move(int rank, int to);
    void moveInGroup(int rank, int from, int to, Axis axis);
    void moveInChain(int rank, int from, int to);
    std::int64_t& unitsAt(int node) { return units_[static_cast<std::size_t>(node)]; }

    const Shape& shape_;
    const Weights& weights_;
    std::vector<int> nodeOfRank_;
    std::vector<std::int64_t> units_;
    std::vector<std::vector<int>> ranks_;
    std::vector<std::size_t> placeOfRank_;  ///< in ranks_ of its node
    std::uint64_t work_ = 0;
};

}  // namespace isthmus::scheduler
