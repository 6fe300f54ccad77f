#include "scheduler/cluster/trim.hpp"

#include <algorithm>
#include <numeric>

namespace isthmus::scheduler {
namespace {

using Sizes = std::vector<int>;

/// The cluster with so many devices a node: the last ones of each stay over.
Cluster withSizes(const Cluster& cluster, const Sizes& sizes) {
    Cluster less = cluster;
    less.nodes.clear();
    for (std::size_t node = 0; node < sizes.size(); ++node) {
        if (sizes[node] == 0) continue;
        less.nodes.push_back(cluster.nodes[node]);
        less.nodes.back().devices.resize(static_cast<std::size_t>(sizes[node]));
    }
    return less;
}

std::vector<std::size_t> bySize(const Sizes& sizes, bool smallestFirst) {
    std::vector<std::size_t> nodes(sizes.size());
    std::iota(nodes.begin(), nodes.end(), std::size_t{0});
    // Of equal ones the last: the first nodes stay as they are.
    std::stable_sort(nodes.begin(), nodes.end(), [&](std::size_t left, std::size_t right) {
        if (sizes[left] == sizes[right]) return left > right;
        return smallestFirst ? sizes[left] < sizes[right] : sizes[left] > sizes[right];
    });
    return nodes;
}

Sizes offTheSmallest(Sizes sizes, int over) {
    for (const std::size_t node : bySize(sizes, true)) {
        const int taken = std::min(over, sizes[node]);
        sizes[node] -= taken;
        over -= taken;
    }
    return sizes;
}

Sizes offTheLargest(Sizes sizes, int over) {
    for (; over > 0; --over) --sizes[bySize(sizes, false).front()];
    return sizes;
}

/// First what does not fill a block, then whole blocks off the smallest.
Sizes wholeBlocks(Sizes sizes, int over, int block) {
    for (const std::size_t node : bySize(sizes, true)) {
        const int taken = std::min(over, sizes[node] % block);
        sizes[node] -= taken;
        over -= taken;
    }
    return offTheSmallest(std::move(sizes), over);
}

}  // namespace

std::vector<Cluster> trimmed(const Cluster& cluster, int ranks, int block) {
    const int over = cluster.ranks() - ranks;
    if (over < 0) return {};
    if (over == 0) return {cluster};
    const Sizes sizes = cluster.sizes();
    std::vector<Sizes> ways = {offTheSmallest(sizes, over), wholeBlocks(sizes, over, block),
                               offTheLargest(sizes, over)};
    std::vector<Cluster> all;
    for (std::size_t way = 0; way < ways.size(); ++way) {
        const auto at = ways.begin() + static_cast<std::ptrdiff_t>(way);
        if (std::find(ways.begin(), at, *at) == at) all.push_back(withSizes(cluster, *at));
    }
    return all;
}

}  // namespace isthmus::scheduler
