#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <isthmus/status.hpp>
#include <isthmus/types.hpp>

#include "comm/plan/plan.hpp"

namespace isthmus {

/// Who is where: ranks of each node, nodes numbered by their lowest rank, ranks of a node
/// ascending. A value.
struct Layout {
    std::vector<std::vector<Rank>> nodes;
    /// What part of an operand each node owns and adds up for all, in units of their sum
    /// (water_fill.hpp), where cards are known to be unequal; else empty.
    std::vector<int> shares = {};
    /// Ranks that hold no data for all-reduces and only add, ascending; never all of them. They
    /// take part in the other collectives like any rank.
    std::vector<Rank> summing = {};
    /// Where links between nodes differ: racks[0] numbers each node's rack, racks[1] the row of
    /// racks that it is in, and so on outwards. Empty: all nodes are alike.
    std::vector<std::vector<int>> racks = {};

    int ranks() const;
    int nodeOf(Rank rank) const;
    bool onlySums(Rank rank) const;
    /// The same ranks with the outermost units for nodes: what their links carry is what nodes
    /// send in it. As it is without racks.
    Layout byRack() const;
    /// From node number per rank (any numbers).
    static Layout of(const std::vector<int>& nodeOfRank);
    bool operator==(const Layout&) const = default;
};

/// What a Plan is wanted for. No size, no pointer: equal requests give equal plans on every rank.
struct PlanRequest {
    Collective collective = Collective::kBarrier;
    Rank me = 0;
    Rank root = 0;
    Mapping mapping = Mapping::kNone;  ///< what of my node's peers is mapped (my own node's choice)
    std::string algorithm;             ///< a name of the catalogue
};

/// One catalogue entry. The names:
///   one node (layouts of one node; kAll, kShared or kRead): "direct" (kAll: in each other's
///     buffers, kShared: staged, kRead: contributions read out of inputs) and "inline" (tiny calls,
///     one meeting, Plan::sharedOutlivesCall) for every collective; barrier: "direct"
///   by messages alone (any layout; kNone): all_reduce "ring" "exchange" "doubling" "halving"
///     "bidirectional_ring" "double_tree" "butterfly"; all_gather "ring" "exchange" "bruck"
///     "bruck4" "bidirectional_ring" "butterfly"; reduce_scatter "ring" "exchange" "halving"
///     "bidirectional_ring" "butterfly"; all_to_all "pairwise" "pairwise_copied" "bruck" "bruck4"
///     "butterfly"; broadcast and reduce "chain" "binomial" "double_tree"; gather and scatter
///     "linear"; barrier "dissemination"
///   several nodes (kAll or kShared): the same names with "two_level_" before, except bruck, bruck4
///     and, but for all_reduce, halving, bidirectional_ring and butterfly; all_to_all
///     "two_level_node_first" "two_level_rail_first" (kShared); all_reduce "two_level_owners" where
///     Layout::shares says what each node owns
///     all but gather, scatter and barrier: "two_level_leaders" (small calls; kShared); what
///     reduces: "two_level_ordered"
///   several nodes in racks (Layout::racks): all_reduce "three_level_exchange" "three_level_ring",
///     all_gather and reduce_scatter "three_level_exchange" (kAll or kShared), all_to_all
///     "rack_first" (kNone)
///   all_reduce where Layout::summing has ranks that only add, and then nothing else: "summing"
///   (any
///     layout; kNone), "two_level_summing" (kShared)
/// isInPlaceSafe is false for all_to_all "direct" with kAll or kRead (its staged plan is safe:
/// Plan::inPlaceSafe says), "pairwise" and "two_level_pairwise"; the "_copied" ones send the same
/// messages, so ranks ("pairwise") or nodes ("two_level_pairwise") may choose alone.
/// Blocks of different sizes (v-forms): all but those of all_to_all where a rank would need counts
/// between others: "direct", "pairwise", "two_level_pairwise" and the "_copied" ones serve them
/// (checkUnequalBlocks() in builder.hpp says what such plans keep to).
struct Algorithm {
    std::string_view name;  ///< "ring", "two_level_ring", ...
    Collective collective;
    std::string_view meaning;  ///< one line for `explain`
    std::string_view source;   ///< paper or derivation
    bool usesLevels;           ///< node part (direct or staged) and rail part
    /// The plans that PlanRequest::mapping may ask for: kNone always for message-only algorithms.
    std::vector<Mapping> mappings;
    bool isInPlaceSafe;
    bool (*fits)(const Layout& layout);  ///< false: not for this layout (e.g. one node only)
    bool servesCounts = true;            ///< blocks of different sizes
    /// Operands are combined as ((rank 0, rank 1), rank 2) ..., for every element alike.
    bool isInRankOrder = false;
};

const std::vector<Algorithm>& catalogue();
const Algorithm* findAlgorithm(Collective collective, std::string_view name);

/// Writes the plan of one rank. kInvalidArgument names what is wrong (unknown algorithm lists the
/// known ones).
Result<Plan> makePlan(const Layout& layout, const PlanRequest& request);

}  // namespace isthmus
