#include "scheduler/search/seating.hpp"

#include <algorithm>

#include "comm/base/assert.hpp"

namespace isthmus::scheduler {

Seating::Seating(const Shape& shape, const Weights& weights, std::vector<int> nodeOfRank, int nodes)
    : shape_(shape),
      weights_(weights),
      nodeOfRank_(std::move(nodeOfRank)),
      units_(static_cast<std::size_t>(nodes)),
      ranks_(static_cast<std::size_t>(nodes)),
      placeOfRank_(nodeOfRank_.size()) {
    const auto byAxis = unitsOfNodes(shape, weights, nodeOfRank_, nodes);
    for (int node = 0; node < nodes; ++node) {
        for (const Axis axis : kAxes) unitsAt(node) += byAxis[static_cast<std::size_t>(node)][axis];
    }
    for (std::size_t rank = 0; rank < nodeOfRank_.size(); ++rank) {
        std::vector<int>& there = ranks_[static_cast<std::size_t>(nodeOfRank_[rank])];
        placeOfRank_[rank] = there.size();
        there.push_back(static_cast<int>(rank));
    }
}

NodeCost Seating::cost() const {
    NodeCost cost;
    for (const std::int64_t units : units_) {
        cost.most = std::max(cost.most, units);
        cost.sum += units;
    }
    return cost;
}

int Seating::hottest() const {
    return static_cast<int>(std::max_element(units_.begin(), units_.end()) - units_.begin());
}

void Seating::moveInGroup(int rank, int from, int to, Axis axis) {
    const std::int64_t weight = weights_.of[axis];
    const int degree = shape_.degree(axis);
    const int stride = shape_.stride(axis);
    int onFrom = 0;
    int onTo = 0;
    int member = shape_.firstOf(rank, axis);
    for (int at = 0; at < degree; ++at, member += stride) {
        const int node = nodeOf(member);
        onFrom += static_cast<int>(node == from);
        onTo += static_cast<int>(node == to);
    }
    work_ += static_cast<std::uint64_t>(degree);
    if (axis == Axis::kExpert) {  // members inside times members outside
        unitsAt(from) +=
            weight * ((onFrom - 1) * (degree - onFrom + 1) - onFrom * (degree - onFrom));
        unitsAt(to) += weight * ((onTo + 1) * (degree - onTo - 1) - onTo * (degree - onTo));
        return;
    }
    const auto cut = [degree](int members) {
        return static_cast<std::int64_t>(members > 0 && members < degree);
    };
    unitsAt(from) += weight * (cut(onFrom - 1) - cut(onFrom));
    unitsAt(to) += weight * (cut(onTo + 1) - cut(onTo));
}

void Seating::moveInChain(int rank, int from, int to) {
    const std::int64_t weight = weights_.of[Axis::kPipe];
    const int stride = shape_.stride(Axis::kPipe);
    const int stage = shape_.coordinate(rank, Axis::kPipe);
    const auto edgeTo = [&](int neighbour) {
        const int node = nodeOf(neighbour);
        unitsAt(from) += node == from ? weight : -weight;
        unitsAt(to) += node == to ? -weight : weight;
    };
    if (stage > 0) edgeTo(rank - stride);
    if (stage + 1 < shape_.degree(Axis::kPipe)) edgeTo(rank + stride);
    work_ += 2;
}

void Seating::move(int rank, int to) {
    const int from = nodeOf(rank);
    for (const Axis axis : kAxes) {
        if (shape_.degree(axis) == 1 || weights_.of[axis] == 0) continue;
        if (axis == Axis::kPipe) {
            moveInChain(rank, from, to);
        } else {
            moveInGroup(rank, from, to, axis);
        }
    }
    nodeOfRank_[static_cast<std::size_t>(rank)] = to;
}

void Seating::swap(int one, int other) {
    const int here = nodeOf(one);
    const int there = nodeOf(other);
    if (here == there) return;
    move(one, there);
    move(other, here);
    std::size_t& placeOfOne = placeOfRank_[static_cast<std::size_t>(one)];
    std::size_t& placeOfOther = placeOfRank_[static_cast<std::size_t>(other)];
    ranks_[static_cast<std::size_t>(here)][placeOfOne] = other;
    ranks_[static_cast<std::size_t>(there)][placeOfOther] = one;
    std::swap(placeOfOne, placeOfOther);
}

void Seating::swap(std::span<const int> some, std::span<const int> others) {
    ISTHMUS_ASSERT(some.size() == others.size());
    for (std::size_t at = 0; at < some.size(); ++at) swap(some[at], others[at]);
}

}  // namespace isthmus::scheduler
