#pragma once

#include <vector>

#include "comm/algorithm/catalogue.hpp"

namespace isthmus {

/// One operand cut so that every node's ranks carry equal shares of it to other nodes: at every
/// multiple of 1 / g of every node of g ranks. Shard k goes through one rank of each node, its
/// helper there; each rank of a node of g serves exactly 1 / g. At most sum(g) - nodes + 1 shards.
class Shards {
public:
    explicit Shards(const Layout& layout);

    int count() const { return static_cast<int>(cuts_.size()) - 1; }
    Rank helper(int node, int shard) const;
    /// The helpers of a shard, one for each node, from `firstNode` on.
    std::vector<Rank> rail(int shard, int firstNode) const;
    /// The same for nodes in any order.
    std::vector<Rank> rail(int shard, const std::vector<int>& nodes) const;
    /// Shards that a rank of the node serves: they are neighbours.
    std::vector<int> servedBy(int node, Rank rank) const;
    /// Every shard cut again into `parts` equal pieces: shard k is chunks k * parts and on.
    Chunking chunking(int parts) const;
    /// The same with pieces as wide as `weights` says, in units of their sum.
    Chunking chunking(const std::vector<int>& weights) const;

private:
    const Layout& layout_;
    std::vector<Fraction> cuts_;
};

/// Which rank of each node carries the block of a rank: at home the rank itself; elsewhere the node
/// deals the ranks outside it round robin to its own. With equal nodes: the same local index.
class BlockRails {
public:
    BlockRails(const Layout& layout, const std::vector<int>& nodeOf);

    int nodes() const { return static_cast<int>(layout_.nodes.size()); }
    int homeOf(Rank block) const { return nodeOf_[static_cast<std::size_t>(block)]; }
    /// Nodes wrap around.
    Rank helper(int node, Rank block) const;
    /// Blocks that `rank` carries, ascending; its own is among them.
    std::vector<Rank> carriedBy(Rank rank) const;
    /// Blocks that other ranks of the node of `rank` carry, ascending.
    std::vector<Rank> carriedBeside(Rank rank) const;
    /// How many nodes after `node` lies `other`, going round: 0 to nodes - 1.
    int hops(int node, int other) const { return (other - node + nodes()) % nodes(); }

private:
    const Layout& layout_;
    const std::vector<int>& nodeOf_;
    std::vector<std::size_t> place_;  // of each rank when all go node by node
};

}  // namespace isthmus
