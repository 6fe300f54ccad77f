#include "tests/unit/scheduler/brute_force.hpp"

#include <algorithm>
#include <limits>

namespace isthmus::scheduler::test {
namespace {

/// Groups of the axis as lists of ranks by coordinate, found by comparing coordinates.
std::vector<std::vector<int>> groupsOf(const Degrees& degrees, Axis axis) {
    const auto ranks = static_cast<int>(ranksOf(degrees));
    std::vector<std::vector<int>> groups;
    std::vector<int> others;  // of a group: coordinates on the other axes as one number
    for (int rank = 0; rank < ranks; ++rank) {
        int rest = rank;
        int key = 0;
        for (const Axis each : kAxes) {
            const int coordinate = rest % degrees[each];
            rest /= degrees[each];
            key = key * degrees[each] + (each == axis ? 0 : coordinate);
        }
        const auto known = std::find(others.begin(), others.end(), key);
        if (known == others.end()) {
            others.push_back(key);
            groups.push_back({rank});
        } else {
            groups[static_cast<std::size_t>(known - others.begin())].push_back(rank);
        }
    }
    return groups;
}

class Sender {
public:
    Sender(const std::vector<int>& nodeOfRank, int nodes)
        : nodeOfRank_(nodeOfRank), wires_(static_cast<std::size_t>(nodes)) {}

    void send(int from, int to, std::int64_t bytes) {
        const int here = nodeOfRank_[static_cast<std::size_t>(from)];
        const int there = nodeOfRank_[static_cast<std::size_t>(to)];
        if (here == there) return;
        wires_[static_cast<std::size_t>(here)].egress += bytes;
        wires_[static_cast<std::size_t>(there)].ingress += bytes;
    }
    void sendInGroup(Axis axis, std::vector<int> group, std::int64_t bytes) {
        const auto others = static_cast<std::int64_t>(group.size()) - 1;
        if (axis == Axis::kPipe) {
            for (std::size_t at = 0; at + 1 < group.size(); ++at) {
                send(group[at], group[at + 1], bytes);
                send(group[at + 1], group[at], bytes);
            }
        } else if (axis == Axis::kExpert) {
            for (const int from : group) {
                for (const int to : group) send(from, to, from == to ? 0 : bytes / others);
            }
        } else {
            std::stable_sort(group.begin(), group.end(), [&](int left, int right) {
                return nodeOfRank_[static_cast<std::size_t>(left)] <
                       nodeOfRank_[static_cast<std::size_t>(right)];
            });
            for (std::size_t at = 0; at < group.size(); ++at) {
                send(group[at], group[(at + 1) % group.size()], bytes);
            }
        }
    }
    const std::vector<Wire>& wires() const { return wires_; }

private:
    const std::vector<int>& nodeOfRank_;
    std::vector<Wire> wires_;
};

}  // namespace

std::vector<Wire> sendEverything(const Degrees& degrees, const AxisBytes& bytes,
                                 const std::vector<int>& nodeOfRank, int nodes) {
    Sender sender(nodeOfRank, nodes);
    for (const Axis axis : kAxes) {
        if (degrees[axis] == 1) continue;
        for (const std::vector<int>& group : groupsOf(degrees, axis)) {
            sender.sendInGroup(axis, group, bytes[axis]);
        }
    }
    return sender.wires();
}

NodeCost costByMessages(const Degrees& degrees, const AxisBytes& bytes,
                        const std::vector<int>& nodeOfRank, int nodes) {
    NodeCost cost;
    for (const Wire& wire : sendEverything(degrees, bytes, nodeOfRank, nodes)) {
        cost.most = std::max(cost.most, wire.egress);
        cost.sum += wire.egress;
    }
    return cost;
}

NodeCost bestOfAll(const Degrees& degrees, const AxisBytes& bytes, const std::vector<int>& sizes) {
    std::vector<int> nodeOfRank;
    for (std::size_t node = 0; node < sizes.size(); ++node) {
        nodeOfRank.insert(nodeOfRank.end(), static_cast<std::size_t>(sizes[node]),
                          static_cast<int>(node));
    }
    NodeCost best{std::numeric_limits<std::int64_t>::max(), 0};
    do {
        best = std::min(best,
                        costByMessages(degrees, bytes, nodeOfRank, static_cast<int>(sizes.size())));
    } while (std::next_permutation(nodeOfRank.begin(), nodeOfRank.end()));
    return best;
}

}  // namespace isthmus::scheduler::test
