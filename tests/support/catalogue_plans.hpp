#pragma once

#include <vector>

#include "comm/algorithm/catalogue.hpp"

namespace isthmus::test {

/// The plans of all ranks for one catalogue entry; a plan that cannot be made fails the running
/// test and gives none.
std::vector<Plan> plansOfEntry(const Algorithm& entry, const std::vector<Mapping>& mappingOfRank,
                               Rank root, const Layout& layout);
std::vector<Plan> plansOfEntry(const Algorithm& entry, const std::vector<Mapping>& mappingOfRank,
                               Rank root, const std::vector<int>& nodeOfRank);

/// Remembers sets of plans by messages alone, for which nodes do not matter: layouts that order the
/// ranks alike give the same ones, and what was shown for them once need not be shown again.
class SeenPlans {
public:
    /// False when the plans are by messages alone and equal to some that were given before.
    bool isNew(const std::vector<Plan>& plans);

private:
    std::vector<std::vector<Plan>> seen_;
};

}  // namespace isthmus::test
