#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "comm/algorithm/catalogue.hpp"

namespace isthmus {

/// Elements that cross between nodes, counted from the plans.
struct Wire {
    std::vector<std::int64_t> leavesNode;
    std::vector<std::int64_t> entersNode;
    std::vector<std::int64_t> leavesRank;
    std::vector<int> signals;  ///< from each node to others
    std::int64_t blockElements = 1;
};

/// A block that every cut divides.
std::int64_t divisibleBlock(const Plan& plan);

std::int64_t elementsOf(const Plan& plan, const Slice& slice, std::int64_t blockElements);

Wire wireOf(const std::vector<Plan>& plans, const Layout& layout);

/// Of the direct plans of an entry; an unknown one fails the test.
Wire wireOfEntry(Collective collective, std::string_view name, const Layout& layout);

/// Nodes of equal size, ranks in order.
Layout equalNodes(int nodes, int ranksOfNode);

}  // namespace isthmus
