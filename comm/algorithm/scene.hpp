#pragma once

#include <vector>

#include "comm/algorithm/catalogue.hpp"
#include "comm/algorithm/group.hpp"

namespace isthmus {

/// What every entry of the catalogue is given besides the builder: who is where, seen by me.
struct Scene {
    Scene(const Layout& where, Rank me, Rank root);

    const Layout& layout;
    std::vector<int> nodeOf;  ///< by rank
    Rank root;
    int myNode;
    Group node;  ///< ranks of my node

    int nodes() const { return static_cast<int>(layout.nodes.size()); }
    int ranks() const { return static_cast<int>(nodeOf.size()); }
    bool isMate(Rank rank) const { return nodeOf[static_cast<std::size_t>(rank)] == myNode; }
    int rootNode() const { return nodeOf[static_cast<std::size_t>(root)]; }

    /// All ranks, node by node, so that neighbours are mostly on one node: a ring crosses each
    /// node's card once each way, whatever the order of ranks.
    Group everybody(Rank me) const;
    /// The same with the root at position 0, its node first, then its rack.
    Group everybodyFromRoot(Rank me) const;
};

}  // namespace isthmus
