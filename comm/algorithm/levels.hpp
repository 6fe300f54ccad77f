#pragma once

#include <vector>

#include "comm/algorithm/catalogue.hpp"
#include "comm/algorithm/sharing.hpp"
#include "comm/plan/builder.hpp"

namespace isthmus {

/// Nodes that are near each other, and the nearer ones among them: a node alone, a rack of nodes, a
/// row of racks. A value.
struct Unit {
    std::vector<int> nodes;   ///< all that are in it, ascending
    std::vector<Unit> parts;  ///< two or more; none when it is one node

    bool has(int node) const;
    /// Of a unit of parts that has the node.
    const Unit& partWith(int node) const;
    /// Levels of parts below it; one node: 0.
    int height() const;

    /// All nodes of a layout by its racks (Layout::racks). A unit of a single part is that part.
    static Unit of(const Layout& layout);
};

/// All nodes in the order of a walk that enters every unit once: those nearest to `first` first,
/// then round.
std::vector<int> nodesFrom(const Layout& layout, int first);

/// One rank of each part of a unit, and what each of them carries for the unit of what they all
/// carry for their parts.
struct Rail {
    std::vector<Rank> ranks;
    Pieces pieces;
};

/// One operand over levels: every unit's parts carry equal shares of it to each other, whatever
/// their sizes. Between any two levels it is cut so that each piece goes through one rank of each
/// part (as Shards do for nodes).
class Levels {
public:
    explicit Levels(const Layout& layout);

    Chunking chunking() const { return {grid_}; }
    /// Chunks that each rank of a node carries for it, in the order of its ranks.
    std::vector<Chunks> sharesOf(int node) const;
    /// The rails that `me` is on, from the innermost unit of several nodes to that of all.
    std::vector<std::vector<Rail>> railsOf(Rank me) const;

private:
    /// Who carries what of the operand for a unit: ranks[i] what lies between cuts i and i + 1.
    struct Carriers {
        std::vector<Fraction> cuts;
        std::vector<Rank> ranks;

        Rank at(const Fraction& place) const;
    };

    Carriers carriersOf(const Unit& unit) const;
    /// Of each part; `cuts` gets the places where any of them changes hands, in order.
    std::vector<Carriers> carriersOfParts(const Unit& unit, std::vector<Fraction>& cuts) const;
    std::vector<Rail> railsIn(const Unit& unit, Rank me) const;
    Chunks between(const Fraction& from, const Fraction& to) const;

    const Layout& layout_;
    Unit whole_;
    std::vector<Fraction> grid_;
};

/// How the blocks of all ranks come into and out of every node once over links of every level. A
/// unit that a block's home is not in has one node, its gate, that speaks to the home for all of
/// it; blocks are dealt to a unit's nodes evenly. From any node the way home leads over gates.
class BlockWays {
public:
    explicit BlockWays(const Layout& layout)
        : layout_(layout),
          ranks_(static_cast<std::size_t>(layout.ranks())),
          whole_(Unit::of(layout)) {}

    struct Step {
        int node;   ///< the next one towards home
        int level;  ///< of the link to it: 0 is between nodes of the innermost unit
    };

    int levels() const { return whole_.height(); }
    /// From a node that is not the block's home, whose node is `home`.
    Step towardsHome(int node, Rank block, int home) const;
    /// All nodes from which a block's next step leads to `node`, and the levels of these links.
    std::vector<Step> comingTo(int node, Rank block, int home) const;

private:
    Step towards(const Unit& unit, int node, int target, Rank block) const;
    int gateOf(const Unit& unit, Rank block) const;

    const Layout& layout_;
    std::size_t ranks_;
    Unit whole_;
};

}  // namespace isthmus
