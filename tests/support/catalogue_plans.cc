#include "tests/support/catalogue_plans.hpp"

#include <gtest/gtest.h>

namespace isthmus::test {

std::vector<Plan> plansOfEntry(const Algorithm& entry, const std::vector<Mapping>& mappingOfRank,
                               Rank root, const std::vector<int>& nodeOfRank) {
    std::vector<Plan> plans;
    const Layout layout = Layout::of(nodeOfRank);
    for (Rank me = 0; me < layout.ranks(); ++me) {
        PlanRequest request;
        request.collective = entry.collective;
        request.me = me;
        request.root = root;
        request.mapping = mappingOfRank[static_cast<std::size_t>(me)];
        request.algorithm = std::string(entry.name);
        Result<Plan> plan = makePlan(layout, request);
        EXPECT_TRUE(plan.ok()) << plan.status().what();
        if (!plan.ok()) return {};
        plans.push_back(std::move(*plan));
    }
    return plans;
}

}  // namespace isthmus::test
