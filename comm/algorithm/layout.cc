#include <algorithm>
#include <map>

#include "comm/algorithm/levels.hpp"
#include "comm/algorithm/scene.hpp"

namespace isthmus {
namespace {

std::vector<int> nodeOfRank(const Layout& layout) {
    std::vector<int> nodeOf(static_cast<std::size_t>(layout.ranks()), 0);
    for (std::size_t node = 0; node < layout.nodes.size(); ++node) {
        for (const Rank rank : layout.nodes[node]) {
            nodeOf[static_cast<std::size_t>(rank)] = static_cast<int>(node);
        }
    }
    return nodeOf;
}

}  // namespace

int Layout::ranks() const {
    std::size_t total = 0;
    for (const std::vector<Rank>& node : nodes) total += node.size();
    return static_cast<int>(total);
}

int Layout::nodeOf(Rank rank) const {
    for (std::size_t node = 0; node < nodes.size(); ++node) {
        const std::vector<Rank>& members = nodes[node];
        if (std::find(members.begin(), members.end(), rank) != members.end()) {
            return static_cast<int>(node);
        }
    }
    return -1;
}

bool Layout::onlySums(Rank rank) const {
    return std::binary_search(summing.begin(), summing.end(), rank);
}

Layout Layout::byRack() const {
    if (racks.empty()) return *this;
    std::vector<int> rackOf(static_cast<std::size_t>(ranks()));
    for (std::size_t node = 0; node < nodes.size(); ++node) {
        for (const Rank rank : nodes[node]) {
            rackOf[static_cast<std::size_t>(rank)] = racks.back()[node];
        }
    }
    Layout outer = of(rackOf);
    outer.summing = summing;
    return outer;
}

Layout Layout::of(const std::vector<int>& nodeOfRank) {
    Layout layout;
    std::map<int, std::size_t> numbers;
    for (std::size_t rank = 0; rank < nodeOfRank.size(); ++rank) {
        const auto [place, isNew] = numbers.emplace(nodeOfRank[rank], layout.nodes.size());
        if (isNew) layout.nodes.emplace_back();
        layout.nodes[place->second].push_back(static_cast<Rank>(rank));
    }
    return layout;
}

Scene::Scene(const Layout& where, Rank me, Rank rootRank)
    : layout(where),
      nodeOf(nodeOfRank(where)),
      root(rootRank),
      myNode(nodeOf[static_cast<std::size_t>(me)]),
      node(where.nodes[static_cast<std::size_t>(myNode)], me) {}

Group Scene::everybody(Rank me) const {
    std::vector<Rank> order;
    for (const std::vector<Rank>& members : layout.nodes) {
        order.insert(order.end(), members.begin(), members.end());
    }
    return {std::move(order), me};
}

Group Scene::everybodyFromRoot(Rank me) const {
    std::vector<Rank> order = {root};
    for (const int at : nodesFrom(layout, rootNode())) {
        for (const Rank rank : layout.nodes[static_cast<std::size_t>(at)]) {
            if (rank != root) order.push_back(rank);
        }
    }
    return {std::move(order), me};
}

}  // namespace isthmus
