#include "scheduler/search/racks.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>

#include "scheduler/search/seating.hpp"

namespace isthmus::scheduler {
namespace {

// Looked-at members: half a second.
constexpr std::uint64_t kMostWork = 100'000'000;

/// What moves as one thing at a level: a node, or a group of the level below.
struct Child {
    std::vector<int> nodes;
    std::vector<int> sizes;  ///< of them; equal ones may change seats
};

std::vector<Child> childrenOf(const std::vector<int>& childOfNode, const std::vector<int>& sizes) {
    std::vector<Child> children;
    for (std::size_t node = 0; node < childOfNode.size(); ++node) {
        const auto child = static_cast<std::size_t>(childOfNode[node]);
        if (child >= children.size()) children.resize(child + 1);
        children[child].nodes.push_back(static_cast<int>(node));
        children[child].sizes.push_back(sizes[node]);
    }
    return children;
}

class Arrangement {
public:
    Arrangement(const Shape& shape, const Weights& weights, std::vector<int>& nodeOfRank,
                const std::vector<int>& sizes, const std::vector<int>& childOfNode,
                const std::vector<int>& groupOfNode)
        : nodeOfRank_(nodeOfRank),
          children_(childrenOf(childOfNode, sizes)),
          groupOfNode_(groupOfNode),
          seating_(shape, weights, groupsOfRanks(),
                   1 + *std::max_element(groupOfNode.begin(), groupOfNode.end())) {
        ranksOfNode_.resize(sizes.size());
        for (std::size_t rank = 0; rank < nodeOfRank.size(); ++rank) {
            ranksOfNode_[static_cast<std::size_t>(nodeOfRank[rank])].push_back(
                static_cast<int>(rank));
        }
    }

    void run() {
        while (seating_.work() < kMostWork && exchangeOne()) {
        }
    }

private:
    std::vector<int> groupsOfRanks() const {
        std::vector<int> groups;
        for (const int node : nodeOfRank_) {
            groups.push_back(groupOfNode_[static_cast<std::size_t>(node)]);
        }
        return groups;
    }
    int groupOf(const Child& child) const {
        return groupOfNode_[static_cast<std::size_t>(child.nodes.front())];
    }
    NodeCost pairCost(int one, int other) const {
        return {std::max(seating_.units(one), seating_.units(other)),
                seating_.units(one) + seating_.units(other)};
    }
    void change(const Child& one, const Child& other) {
        for (std::size_t at = 0; at < one.nodes.size(); ++at) {
            seating_.swap(ranksOf(one.nodes[at]), ranksOf(other.nodes[at]));
        }
    }
    std::vector<int>& ranksOf(int node) { return ranksOfNode_[static_cast<std::size_t>(node)]; }
    void keep(const Child& one, const Child& other) {
        for (std::size_t at = 0; at < one.nodes.size(); ++at) {
            for (const int rank : ranksOf(one.nodes[at])) nodeAt(rank) = other.nodes[at];
            for (const int rank : ranksOf(other.nodes[at])) nodeAt(rank) = one.nodes[at];
            std::swap(ranksOf(one.nodes[at]), ranksOf(other.nodes[at]));
        }
    }
    int& nodeAt(int rank) { return nodeOfRank_[static_cast<std::size_t>(rank)]; }
    bool exchangeOne();

    std::vector<int>& nodeOfRank_;
    std::vector<Child> children_;
    const std::vector<int>& groupOfNode_;
    Seating seating_;
    std::vector<std::vector<int>> ranksOfNode_;
};

/// Makes the first exchange of two children of different groups that makes both groups cheaper.
bool Arrangement::exchangeOne() {
    for (std::size_t first = 0; first < children_.size(); ++first) {
        for (std::size_t second = first + 1; second < children_.size(); ++second) {
            const Child& one = children_[first];
            const Child& other = children_[second];
            const int here = groupOf(one);
            const int there = groupOf(other);
            if (here == there || one.sizes != other.sizes) continue;
            if (seating_.work() >= kMostWork) return false;
            const NodeCost before = pairCost(here, there);
            change(one, other);
            if (pairCost(here, there) < before) {
                keep(one, other);
                return true;
            }
            change(other, one);
        }
    }
    return false;
}

}  // namespace

std::vector<int> groupOfNodes(const Cluster& cluster, std::size_t level) {
    std::map<std::vector<std::string>, int> numbers;
    std::vector<int> groups;
    for (const Node& node : cluster.nodes) {
        const auto end = node.at.begin() + static_cast<std::ptrdiff_t>(level) + 1;
        const std::vector<std::string> path(node.at.begin(), end);
        groups.push_back(numbers.emplace(path, static_cast<int>(numbers.size())).first->second);
    }
    return groups;
}

std::vector<int> arrangeRacks(const Cluster& cluster, const Shape& shape, const Weights& weights,
                              std::vector<int> nodeOfRank) {
    if (cluster.nodes.empty()) return nodeOfRank;
    std::vector<int> children(cluster.nodes.size());
    std::iota(children.begin(), children.end(), 0);
    for (std::size_t level = cluster.nodes.front().at.size(); level-- > 0;) {
        const std::vector<int> groups = groupOfNodes(cluster, level);
        if (groups.back() > 0) {
            Arrangement(shape, weights, nodeOfRank, cluster.sizes(), children, groups).run();
        }
        children = groups;
    }
    return nodeOfRank;
}

}  // namespace isthmus::scheduler
