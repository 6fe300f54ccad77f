#include "scheduler/placement/placement.hpp"

#include <algorithm>
#include <limits>

#include "scheduler/search/orders.hpp"

namespace isthmus::scheduler {
namespace {

// Above it the best of all orders costs more time than the search.
constexpr int kMostForEveryOrder = 4'096;

}  // namespace

std::vector<int> Placement::nodeOfRank() const {
    std::vector<int> nodes;
    nodes.reserve(seats.size());
    for (const Seat& seat : seats) nodes.push_back(seat.node);
    return nodes;
}

Placement placementOf(const Cluster& cluster, const Candidate& candidate,
                      const PerAxis<bool>& isNamed) {
    Placement placement;
    placement.cluster = cluster;
    placement.degrees = candidate.degrees;
    placement.isNamed = isNamed;
    placement.bytes = candidate.bytes;
    placement.cost = candidate.cost;
    placement.bound = candidate.bound;
    placement.isOptimal = candidate.isOptimal;
    placement.isSumOptimal = candidate.isSumOptimal;
    placement.method = candidate.method;
    std::vector<std::size_t> taken(cluster.nodes.size());
    for (const int node : candidate.nodeOfRank) {
        const auto at = static_cast<std::size_t>(node);
        placement.seats.push_back({node, cluster.nodes[at].devices[taken[at]++].index});
    }
    return placement;
}

namespace {

/// Ranks in the order in which a launcher that sorts host names as text starts them.
std::vector<int> asLaunched(const Cluster& cluster, const std::vector<int>& sizes) {
    std::vector<int> launched;
    for (const int node : textSorted(cluster)) {
        launched.insert(launched.end(),
                        static_cast<std::size_t>(sizes[static_cast<std::size_t>(node)]), node);
    }
    return launched;
}

}  // namespace

std::vector<OrderCost> costsOfOrders(const Cluster& cluster, const Degrees& degrees,
                                     const AxisBytes& bytes, const AxisVolumes* volumes) {
    const Result<Weights> weights = weightsOf(degrees, bytes);
    if (!weights.ok()) return {};
    const Shape shape(degrees);
    const std::vector<int> sizes = cluster.sizes();
    const auto nodes = static_cast<int>(sizes.size());
    const auto seatsOf = [&](const NamedOrder& order) {
        return fillInTurn(sequenceOf(shape, order.fastestFirst), sizes);
    };
    std::vector<OrderCost> costs;
    const auto add = [&](std::string name, const std::vector<int>& nodeOfRank) {
        OrderCost cost{std::move(name), costOf(shape, *weights, nodeOfRank, nodes), {}};
        if (volumes != nullptr) cost.exact = costOf(bytesOfNodes(*volumes, nodeOfRank, nodes));
        costs.push_back(std::move(cost));
    };
    for (const NamedOrder& order : namedOrders()) add(order.name, seatsOf(order));
    add("as launched (hosts sorted as text)", asLaunched(cluster, sizes));

    if (shape.ranks() > kMostForEveryOrder) return costs;
    NodeCost best{std::numeric_limits<std::int64_t>::max(), 0};
    NamedOrder bestOrder;
    const std::vector<NamedOrder> orders = everyOrder(degrees);
    for (const NamedOrder& order : orders) {
        const NodeCost cost = costOf(shape, *weights, seatsOf(order), nodes);
        if (cost >= best) continue;
        best = cost;
        bestOrder = order;
    }
    add("best of " + std::to_string(orders.size()) + " axis orders (" + bestOrder.name + ")",
        seatsOf(bestOrder));
    return costs;
}

std::vector<std::vector<int>> groupsOf(const Placement& placement, Axis axis) {
    const Shape shape(placement.degrees);
    std::vector<std::vector<int>> groups;
    for (int rank = 0; rank < shape.ranks(); ++rank) {
        if (shape.coordinate(rank, axis) != 0) continue;
        std::vector<int> group;
        for (int at = 0; at < shape.degree(axis); ++at) {
            group.push_back(rank + at * shape.stride(axis));
        }
        if (axis != Axis::kPipe) {
            std::sort(group.begin(), group.end(), [&](int left, int right) {
                return placement.seats[static_cast<std::size_t>(left)] <
                       placement.seats[static_cast<std::size_t>(right)];
            });
        }
        groups.push_back(std::move(group));
    }
    return groups;
}

}  // namespace isthmus::scheduler
