#include "tests/support/catalogue_plans.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace isthmus::test {

std::vector<Plan> plansOfEntry(const Algorithm& entry, const std::vector<Mapping>& mappingOfRank,
                               Rank root, const Layout& layout) {
    std::vector<Plan> plans;
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

std::vector<Plan> plansOfEntry(const Algorithm& entry, const std::vector<Mapping>& mappingOfRank,
                               Rank root, const std::vector<int>& nodeOfRank) {
    return plansOfEntry(entry, mappingOfRank, root, Layout::of(nodeOfRank));
}

bool SeenPlans::isNew(const std::vector<Plan>& plans) {
    const bool areMessages = std::all_of(plans.begin(), plans.end(), [](const Plan& plan) {
        return plan.mapping == Mapping::kNone && plan.shared.empty();
    });
    if (!areMessages) return true;
    if (std::find(seen_.begin(), seen_.end(), plans) != seen_.end()) return false;
    seen_.push_back(plans);
    return true;
}

}  // namespace isthmus::test
