#include "scheduler/traffic/node_cost.hpp"

#include <algorithm>
#include <numeric>

#include "comm/base/assert.hpp"

namespace isthmus::scheduler {
namespace {

using Units = std::vector<PerAxis<std::int64_t>>;

/// The members of one group, counted by node.
class Counter {
public:
    explicit Counter(int nodes) : members_(static_cast<std::size_t>(nodes)) {}

    void add(int node) {
        if (members_[static_cast<std::size_t>(node)]++ == 0) touched_.push_back(node);
    }
    const std::vector<int>& touched() const { return touched_; }
    std::int64_t on(int node) const { return members_[static_cast<std::size_t>(node)]; }
    void clear() {
        for (const int node : touched_) members_[static_cast<std::size_t>(node)] = 0;
        touched_.clear();
    }

private:
    std::vector<std::int64_t> members_;
    std::vector<int> touched_;
};

void addChain(const Shape& shape, std::int64_t weight, std::span<const int> nodeOfRank, int first,
              Units& units) {
    const int stride = shape.stride(Axis::kPipe);
    for (int stage = 0; stage + 1 < shape.degree(Axis::kPipe); ++stage) {
        const int rank = first + stage * stride;
        const int next = rank + stride;
        const int here = nodeOfRank[static_cast<std::size_t>(rank)];
        const int there = nodeOfRank[static_cast<std::size_t>(next)];
        if (here == there) continue;
        units[static_cast<std::size_t>(here)][Axis::kPipe] += weight;
        units[static_cast<std::size_t>(there)][Axis::kPipe] += weight;
    }
}

void addGroup(const Shape& shape, Axis axis, std::int64_t weight, std::span<const int> nodeOfRank,
              int first, Counter& counter, Units& units) {
    const int degree = shape.degree(axis);
    for (int at = 0; at < degree; ++at) {
        const int rank = first + at * shape.stride(axis);
        counter.add(nodeOfRank[static_cast<std::size_t>(rank)]);
    }
    if (counter.touched().size() > 1) {
        for (const int node : counter.touched()) {
            const std::int64_t inside = counter.on(node);
            const std::int64_t cuts = axis == Axis::kExpert ? inside * (degree - inside) : 1;
            units[static_cast<std::size_t>(node)][axis] += cuts * weight;
        }
    }
    counter.clear();
}

}  // namespace

Result<Weights> weightsOf(const Degrees& degrees, const AxisBytes& bytes) {
    Weights weights;
    const std::int64_t others = degrees[Axis::kExpert] - 1;
    if (others > 0) {
        weights.scale = others / std::gcd(others, std::max<std::int64_t>(bytes[Axis::kExpert], 1));
        if (bytes[Axis::kExpert] == 0) weights.scale = 1;
    }
    // A rank is on two edges of its chain; all ranks of a job may be summed.
    double total = 0;
    for (const Axis axis : kAxes) {
        if (bytes[axis] < 0) {
            return Status::invalidArgument("bytes of " + std::string(nameOf(axis)) + ": " +
                                           std::to_string(bytes[axis]) + " is negative");
        }
        if (degrees[axis] == 1) continue;
        total += 2.0 * static_cast<double>(bytes[axis]) * static_cast<double>(weights.scale) *
                 static_cast<double>(ranksOf(degrees));
    }
    if (total > 0x1p62) return Status::unsupported("the bytes of all ranks together do not fit");
    for (const Axis axis : kAxes) {
        if (degrees[axis] > 1) weights.of[axis] = bytes[axis] * weights.scale;
    }
    if (others > 0) weights.of[Axis::kExpert] /= others;
    return weights;
}

Units unitsOfNodes(const Shape& shape, const Weights& weights, std::span<const int> nodeOfRank,
                   int nodes) {
    ISTHMUS_ASSERT(nodeOfRank.size() == static_cast<std::size_t>(shape.ranks()));
    Units units(static_cast<std::size_t>(nodes));
    Counter counter(nodes);
    for (const Axis axis : kAxes) {
        const std::int64_t weight = weights.of[axis];
        if (shape.degree(axis) == 1 || weight == 0) continue;
        const int stride = shape.stride(axis);
        const int span = stride * shape.degree(axis);
        for (int outer = 0; outer < shape.ranks(); outer += span) {
            for (int first = outer; first < outer + stride; ++first) {
                if (axis == Axis::kPipe) {
                    addChain(shape, weight, nodeOfRank, first, units);
                } else {
                    addGroup(shape, axis, weight, nodeOfRank, first, counter, units);
                }
            }
        }
    }
    return units;
}

std::vector<AxisBytes> bytesOfNodes(const Shape& shape, const AxisBytes& bytes,
                                    std::span<const int> nodeOfRank, int nodes) {
    const Result<Weights> weights = weightsOf(shape.degrees(), bytes);
    ISTHMUS_ASSERT(weights.ok());
    Units units = unitsOfNodes(shape, *weights, nodeOfRank, nodes);
    for (PerAxis<std::int64_t>& node : units) {
        for (const Axis axis : kAxes) node[axis] = weights->bytes(node[axis]);
    }
    return units;
}

NodeCost costOf(const Shape& shape, const Weights& weights, std::span<const int> nodeOfRank,
                int nodes) {
    NodeCost cost;
    for (const PerAxis<std::int64_t>& node : unitsOfNodes(shape, weights, nodeOfRank, nodes)) {
        std::int64_t units = 0;
        for (const Axis axis : kAxes) units += node[axis];
        cost.most = std::max(cost.most, weights.bytes(units));
        cost.sum += weights.bytes(units);
    }
    return cost;
}

}  // namespace isthmus::scheduler
