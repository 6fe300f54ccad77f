#include <gtest/gtest.h>

#include <algorithm>

#include "comm/cost/plan_bytes.hpp"
#include "comm/cost/simulate.hpp"
#include "comm/selector/select.hpp"

namespace isthmus {
namespace {

// Divides by every shard and piece of the layouts below: 32, 18, 9, 7, 5.
constexpr std::uint64_t kBlockElements = 40320;

std::vector<Layout> layouts() {
    return {Layout::of({0, 0, 1, 1}),       Layout::of({0, 1, 0, 1}),
            Layout::of({0, 0, 1, 1, 2, 2}), Layout::of({0, 0, 0, 1, 1, 2}),
            Layout::of({0, 1, 2, 0, 1, 0}), Layout::of({0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3}),
            Layout::of({0, 1, 2, 3, 4}),    Layout::of({0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6})};
}

std::vector<Plan> plansOf(const CallShape& call, const Layout& layout, const std::string& name,
                          Mapping mapping) {
    std::vector<Plan> plans;
    for (Rank me = 0; me < layout.ranks(); ++me) {
        const Algorithm* const entry = findAlgorithm(call.collective, name);
        const bool isFree = entry != nullptr && entry->mappings.size() == 1;
        Result<Plan> plan = makePlan(layout, {call.collective, me, call.root,
                                              isFree ? entry->mappings.front() : mapping, name});
        EXPECT_TRUE(plan.ok()) << plan.status().what();
        if (plan.ok()) plans.push_back(std::move(*plan));
    }
    return plans;
}

std::uint64_t busiestOf(const std::vector<WireBytes>& nodes) {
    std::uint64_t most = 0;
    for (const WireBytes& node : nodes) most = std::max(most, node.larger());
    return most;
}

// collectives.md 2.1: what is chosen puts no byte more than the least on the busiest card.
TEST(Select, ChoosesWhatMeetsTheBoundBetweenNodes) {
    for (const Layout& layout : layouts()) {
        const auto ranks = static_cast<std::uint64_t>(layout.ranks());
        for (int index = 0; index < kCollectives; ++index) {
            CallShape call;
            call.collective = static_cast<Collective>(index);
            call.type = DataType::kFloat32;
            call.bytes = kBlockElements * sizeof(float) * ranks;
            call.root = static_cast<Rank>(ranks) - 1;
            const Result<Selection> selection = select(call, layout, {});
            ASSERT_TRUE(selection.ok());
            PlanCall sized = PlanCall::of(call.collective, call.type, call.bytes, layout.ranks());
            sized.segments = 1;
            for (const Mapping mapping : {Mapping::kAll, Mapping::kShared}) {
                const std::vector<Plan> plans =
                    plansOf(call, layout, selection->algorithm, mapping);
                ASSERT_EQ(plans.size(), ranks);
                EXPECT_EQ(busiestOf(wireBytesOfNodes(plans, layout, sized)),
                          wireBound(call.collective, layout, call.bytes, call.root).busiest)
                    << nameOf(call.collective) << " by " << selection->algorithm << " over "
                    << layout.nodes.size() << " nodes";
            }
        }
    }
}

// limits.md 5b and the model: 64 MB over two nodes at 5 Gbit/s, bound 112 ms.
TEST(Simulate, PredictsNearTheBoundForWhatIsChosen) {
    const Layout layout = Layout::of({0, 0, 1, 1});
    CallShape call;
    call.collective = Collective::kAllReduce;
    call.type = DataType::kFloat32;
    call.bytes = 64 << 20;
    const Result<Selection> selection = select(call, layout, {});
    ASSERT_TRUE(selection.ok());
    PlanCall sized = PlanCall::of(call.collective, call.type, call.bytes, 4);
    sized.segments = selection->segments;
    sized.window = selection->window;
    LinkModel model;
    model.wireBytesPerSecond = goodputOf(5e9);
    const Result<double> seconds = simulateSeconds(
        plansOf(call, layout, selection->algorithm, Mapping::kAll), layout, sized, model);
    ASSERT_TRUE(seconds.ok());
    EXPECT_GT(*seconds, 0.1122);
    EXPECT_LT(*seconds, 0.1122 * 1.05);
}

}  // namespace
}  // namespace isthmus
