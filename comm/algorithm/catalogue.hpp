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

    int ranks() const;
    int nodeOf(Rank rank) const;
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

/// One catalogue entry.
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
};

const std::vector<Algorithm>& catalogue();
const Algorithm* findAlgorithm(Collective collective, std::string_view name);

/// Writes the plan of one rank. kInvalidArgument names what is wrong (unknown algorithm lists the
/// known ones).
Result<Plan> makePlan(const Layout& layout, const PlanRequest& request);

}  // namespace isthmus
