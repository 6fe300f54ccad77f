#include "comm/algorithm/sharing.hpp"

#include <algorithm>
#include <numeric>

#include "comm/algorithm/fractions.hpp"

namespace isthmus {
Shards::Shards(const Layout& layout) : layout_(layout) {
    std::vector<std::size_t> sizes;
    for (const std::vector<Rank>& node : layout.nodes) sizes.push_back(node.size());
    std::sort(sizes.begin(), sizes.end());
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    for (const std::size_t size : sizes) {
        const auto parts = static_cast<std::int64_t>(size);
        for (std::int64_t part = 0; part <= parts; ++part) cuts_.push_back(reduced(part, parts));
    }
    std::sort(cuts_.begin(), cuts_.end(), isLess);
    cuts_.erase(std::unique(cuts_.begin(), cuts_.end()), cuts_.end());
}

Rank Shards::helper(int node, int shard) const {
    const std::vector<Rank>& members = layout_.nodes[static_cast<std::size_t>(node)];
    const Fraction& begin = cuts_[static_cast<std::size_t>(shard)];
    const auto share = begin.numerator * static_cast<std::int64_t>(members.size());
    return members[static_cast<std::size_t>(share / begin.denominator)];
}

std::vector<Rank> Shards::rail(int shard, int firstNode) const {
    const int nodes = static_cast<int>(layout_.nodes.size());
    std::vector<int> order;
    for (int hops = 0; hops < nodes; ++hops) order.push_back((firstNode + hops) % nodes);
    return rail(shard, order);
}

std::vector<Rank> Shards::rail(int shard, const std::vector<int>& nodes) const {
    std::vector<Rank> ranks;
    ranks.reserve(nodes.size());
    for (const int node : nodes) ranks.push_back(helper(node, shard));
    return ranks;
}

std::vector<int> Shards::servedBy(int node, Rank rank) const {
    std::vector<int> served;
    for (int shard = 0; shard < count(); ++shard) {
        if (helper(node, shard) == rank) served.push_back(shard);
    }
    return served;
}

Chunking Shards::chunking(int parts) const {
    return chunking(std::vector<int>(static_cast<std::size_t>(parts), 1));
}

Chunking Shards::chunking(const std::vector<int>& weights) const {
    const int all = std::accumulate(weights.begin(), weights.end(), 0);
    Chunking chunking{.cuts = {{0, 1}}};
    for (std::size_t shard = 0; shard + 1 < cuts_.size(); ++shard) {
        int before = 0;
        for (const int weight : weights) {
            before += weight;
            chunking.cuts.push_back(between(cuts_[shard], cuts_[shard + 1], before, all));
        }
    }
    return chunking;
}

BlockRails::BlockRails(const Layout& layout, const std::vector<int>& nodeOf)
    : layout_(layout), nodeOf_(nodeOf), place_(nodeOf.size()) {
    std::size_t place = 0;
    for (const std::vector<Rank>& members : layout.nodes) {
        for (const Rank rank : members) place_[static_cast<std::size_t>(rank)] = place++;
    }
}

Rank BlockRails::helper(int node, Rank block) const {
    const int at = (node + nodes()) % nodes();
    const int home = homeOf(block);
    if (at == home) return block;
    const std::vector<Rank>& members = layout_.nodes[static_cast<std::size_t>(at)];
    const std::size_t outsider =
        place_[static_cast<std::size_t>(block)] - (home > at ? members.size() : 0);
    return members[outsider % members.size()];
}

std::vector<Rank> BlockRails::carriedBy(Rank rank) const {
    const int node = homeOf(rank);
    std::vector<Rank> blocks;
    for (Rank block = 0; block < static_cast<Rank>(nodeOf_.size()); ++block) {
        if (helper(node, block) == rank) blocks.push_back(block);
    }
    return blocks;
}

std::vector<Rank> BlockRails::carriedBeside(Rank rank) const {
    const int node = homeOf(rank);
    std::vector<Rank> blocks;
    for (Rank block = 0; block < static_cast<Rank>(nodeOf_.size()); ++block) {
        if (helper(node, block) != rank) blocks.push_back(block);
    }
    return blocks;
}

}  // namespace isthmus
