// Links between racks: what crosses them, the least of it, and the time.
#include <gtest/gtest.h>

#include "comm/cost/bounds.hpp"
#include "comm/cost/simulate.hpp"

namespace isthmus {
namespace {

/// Racks of two nodes of two ranks.
Layout inRacks(int racks) {
    std::vector<int> nodeOf;
    std::vector<int> rackOf;
    for (int rank = 0; rank < 4 * racks; ++rank) nodeOf.push_back(rank / 2);
    for (int node = 0; node < 2 * racks; ++node) rackOf.push_back(node / 2);
    Layout layout = Layout::of(nodeOf);
    layout.racks = {rackOf};
    return layout;
}

std::vector<Plan> plansFor(Collective collective, const char* algorithm, const Layout& layout) {
    const Algorithm* entry = findAlgorithm(collective, algorithm);
    std::vector<Plan> plans;
    for (Rank me = 0; entry != nullptr && me < layout.ranks(); ++me) {
        Result<Plan> plan =
            makePlan(layout, {collective, me, 0, entry->mappings.front(), algorithm});
        if (!plan.ok()) return {};
        plans.push_back(std::move(*plan));
    }
    return plans;
}

/// A byte a second over a card, one in four over the link of a rack; all else is free.
LinkModel narrowRacks() {
    LinkModel model;
    model.wireBytesPerSecond = 1;
    model.rackBytesPerSecond = 0.25;
    model.wireLatencySeconds = 1e-9;
    model.messageSeconds = 0;
    model.meetSeconds = 0;
    model.nodeBytesPerSecond = 1e30;
    model.reduceBytesPerSecond = 1e30;
    return model;
}

constexpr std::uint64_t kBytes = 3 * 4 * 4 * 5 * 7 * 16;  // every cut of these layouts divides it

// What the accountant counts over the links of racks is the least there can be.
TEST(Racks, AreCrossedByTheBound) {
    for (const int racks : {2, 3, 4}) {
        const Layout layout = inRacks(racks);
        const Layout between = layout.byRack();
        for (const auto& [collective, algorithm] :
             {std::pair(Collective::kAllReduce, "three_level_exchange"),
              {Collective::kAllReduce, "three_level_ring"},
              {Collective::kAllGather, "three_level_exchange"},
              {Collective::kReduceScatter, "three_level_exchange"},
              {Collective::kAllToAll, "rack_first"},
              {Collective::kBroadcast, "two_level_chain"},
              {Collective::kReduce, "two_level_chain"}}) {
            const auto plans = plansFor(collective, algorithm, layout);
            ASSERT_FALSE(plans.empty()) << algorithm;
            const PlanCall call =
                PlanCall::of(collective, DataType::kUint8, kBytes, layout.ranks());
            const std::uint64_t bytes =
                static_cast<std::uint64_t>(call.blockElements) *
                (collective == Collective::kAllReduce || collective == Collective::kBroadcast ||
                         collective == Collective::kReduce
                     ? 1U
                     : static_cast<unsigned>(layout.ranks()));
            const WireBound bound = wireBound(collective, between, bytes);
            std::uint64_t busiest = 0;
            for (const WireBytes& rack : wireBytesOfNodes(plans, between, call)) {
                busiest = std::max(busiest, rack.larger());
            }
            EXPECT_EQ(busiest, bound.busiest)
                << nameOf(collective) << " " << algorithm << " over " << racks << " racks";
        }
    }
}

// Two racks: S over each link, four times S in time; two levels let 2 S cross, two nodes S each.
TEST(Racks, TakeTheTimeOfTheirLinks) {
    const Layout layout = inRacks(2);
    const PlanCall call = PlanCall::of(Collective::kAllReduce, DataType::kUint8, kBytes, 8);
    const double least = boundSeconds(Collective::kAllReduce, layout, kBytes, 0, narrowRacks());
    EXPECT_DOUBLE_EQ(least, 4.0 * kBytes);
    const auto timeOf = [&](const char* algorithm) {
        const auto plans = plansFor(Collective::kAllReduce, algorithm, layout);
        const Result<double> seconds = simulateSeconds(plans, layout, call, narrowRacks());
        return seconds.ok() ? *seconds : -1;
    };
    EXPECT_GE(timeOf("two_level_exchange"), 8.0 * kBytes);
    EXPECT_GE(timeOf("three_level_exchange"), least);
    // In one piece its levels follow each other: S / 2 over a card before, and as much after.
    EXPECT_LE(timeOf("three_level_exchange"), least + 1.01 * kBytes);
}

// A link that carries anything, or racks that are not known, change no time.
TEST(Racks, CostNothingWhereTheirLinksAreWide) {
    Layout layout = inRacks(2);
    const PlanCall call = PlanCall::of(Collective::kAllReduce, DataType::kUint8, kBytes, 8);
    const auto plans = plansFor(Collective::kAllReduce, "two_level_ring", layout);
    LinkModel model = narrowRacks();
    model.rackBytesPerSecond = 0;
    const Result<double> wide = simulateSeconds(plans, layout, call, model);
    layout.racks.clear();
    const Result<double> none = simulateSeconds(plans, layout, call, narrowRacks());
    ASSERT_TRUE(wide.ok() && none.ok());
    EXPECT_DOUBLE_EQ(*wide, *none);
    EXPECT_DOUBLE_EQ(boundSeconds(Collective::kAllReduce, layout, kBytes, 0, narrowRacks()),
                     1.5 * kBytes);  // 2 * 3 / 4 of the operand over each card
}

}  // namespace
}  // namespace isthmus
