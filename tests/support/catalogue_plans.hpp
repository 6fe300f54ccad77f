#pragma once

#include <vector>

#include "comm/algorithm/catalogue.hpp"

namespace isthmus::test {

/// The plans of all ranks for one catalogue entry; a plan that cannot be made fails the running
/// test and gives none.
std::vector<Plan> plansOfEntry(const Algorithm& entry, const std::vector<Mapping>& mappingOfRank,
                               Rank root, const std::vector<int>& nodeOfRank);

}  // namespace isthmus::test
