#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "comm/algorithm/scene.hpp"
#include "comm/algorithm/sharing.hpp"
#include "tests/unit/algorithm/plan_sets.hpp"

namespace isthmus {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Status failureOf(const Layout& layout, const PlanRequest& request) {
    return makePlan(layout, request).status();
}

TEST(Catalogue, HasNamesOncePerCollectiveAndSomethingForEveryLayout) {
    std::set<std::pair<Collective, std::string_view>> names;
    for (const Algorithm& entry : catalogue()) {
        EXPECT_TRUE(names.emplace(entry.collective, entry.name).second) << entry.name;
        EXPECT_FALSE(entry.meaning.empty());
        EXPECT_FALSE(entry.source.empty());
    }
    for (int number = 0; number < kCollectives; ++number) {
        for (const Layout& layout : testLayouts()) {
            int fitting = 0;
            for (const Algorithm& entry : catalogue()) {
                const bool isMapped = entry.mappings.front() != Mapping::kNone;
                if (static_cast<int>(entry.collective) != number || !isMapped) continue;
                fitting += entry.fits(layout) ? 1 : 0;
            }
            EXPECT_GT(fitting, 0) << nameOf(static_cast<Collective>(number));
        }
    }
}

TEST(Catalogue, UnknownAlgorithmListsTheKnownOnes) {
    const Status status =
        failureOf(Layout::of({0, 0}), {.collective = Collective::kAllToAll, .algorithm = "ring"});
    EXPECT_EQ(status.code(), Status::Code::kInvalidArgument);
    EXPECT_THAT(status.what(), AllOf(HasSubstr("all_to_all \"ring\""), HasSubstr("direct, inline"),
                                     HasSubstr("pairwise_copied")));
}

TEST(Catalogue, RefusesWhatDoesNotFit) {
    const Layout two = Layout::of({0, 1});
    const auto request = [](Rank me, Rank root, Mapping mapping, const char* name) {
        return PlanRequest{Collective::kBroadcast, me, root, mapping, name};
    };
    EXPECT_THAT(failureOf(two, request(0, 0, Mapping::kAll, "direct")).what(),
                HasSubstr("does not fit 2 nodes"));
    EXPECT_THAT(failureOf(two, request(0, 0, Mapping::kAll, "chain")).what(),
                HasSubstr("no plan for mapping"));
    EXPECT_THAT(failureOf(two, request(2, 0, Mapping::kNone, "chain")).what(),
                HasSubstr("rank 2, root 0 of 2"));
    EXPECT_THAT(failureOf(two, request(0, -1, Mapping::kNone, "chain")).what(),
                HasSubstr("root -1"));
    const Layout twice{{{0, 1}, {1}}};
    EXPECT_THAT(failureOf(twice, request(0, 0, Mapping::kNone, "chain")).what(),
                HasSubstr("every rank once"));
    EXPECT_TRUE(makePlan(two, request(1, 1, Mapping::kNone, "chain")).ok());
}

TEST(Catalogue, EqualRequestsGiveEqualPlansAndRootsOfRootlessCallsDoNotMatter) {
    const Layout layout = Layout::of({0, 0, 0, 1, 1, 2});
    PlanRequest request{Collective::kAllReduce, 2, 0, Mapping::kAll, "two_level_ring"};
    const Result<Plan> first = makePlan(layout, request);
    request.root = 4;
    const Result<Plan> second = makePlan(layout, request);
    ASSERT_TRUE(first.ok());
    ASSERT_TRUE(second.ok());
    EXPECT_EQ(*first, *second);
}

TEST(Layout, NumbersNodesByTheirLowestRank) {
    const Layout layout = Layout::of({7, 3, 7, 3, 5});
    EXPECT_THAT(layout.nodes, ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3), ElementsAre(4)));
    EXPECT_EQ(layout.ranks(), 5);
    EXPECT_EQ(layout.nodeOf(3), 1);
    EXPECT_EQ(layout.nodeOf(5), -1);
}

TEST(Catalogue, HasOwnersWhereALayoutHasShares) {
    Layout layout = Layout::of({0, 0, 1, 2});
    const PlanRequest request{Collective::kAllReduce, 1, 0, Mapping::kAll, "two_level_owners"};
    EXPECT_THAT(failureOf(layout, request).what(), HasSubstr("does not fit 3 nodes"));
    layout.shares = {2, 1};
    EXPECT_THAT(failureOf(layout, request).what(), HasSubstr("one for each node"));
    layout.shares = {2, -1, 0};
    EXPECT_THAT(failureOf(layout, request).what(), HasSubstr("none negative"));
    layout.shares = {2, 1, 0};
    const Result<Plan> plan = makePlan(layout, request);
    ASSERT_TRUE(plan.ok()) << plan.status().what();
    const std::vector<Fraction> cuts = {{0, 1}, {1, 3}, {1, 2}, {1, 2}, {5, 6}, {1, 1}, {1, 1}};
    EXPECT_EQ(plan->chunking.cuts, cuts);
}

TEST(Scene, OrdersRanksNodeByNodeAndFromTheRoot) {
    const Layout layout = Layout::of({0, 1, 0, 1, 2});
    const Scene scene(layout, 1, 3);
    const Group everybody = scene.everybody(1);
    EXPECT_THAT(everybody.ranks(), ElementsAre(0, 2, 1, 3, 4));
    EXPECT_EQ(everybody.me(), 2);
    const Group fromRoot = scene.everybodyFromRoot(1);
    EXPECT_THAT(fromRoot.ranks(), ElementsAre(3, 1, 4, 0, 2));
}

TEST(Shards, AreCutAtEveryMultipleOfEachNodesShare) {
    const Layout layout = Layout::of({0, 0, 0, 1, 1, 2});
    const Shards shards(layout);
    const std::vector<Fraction> cuts = {{0, 1}, {1, 3}, {1, 2}, {2, 3}, {1, 1}};
    EXPECT_EQ(shards.chunking(1).cuts, cuts);
    EXPECT_THAT(shards.rail(1, 0), ElementsAre(1, 3, 5));
    EXPECT_THAT(shards.rail(2, 1), ElementsAre(4, 5, 1));
    EXPECT_THAT(shards.servedBy(1, 3), ElementsAre(0, 1));
    EXPECT_THAT(shards.servedBy(2, 5), ElementsAre(0, 1, 2, 3));
    EXPECT_EQ(shards.chunking(3).cuts[1], (Fraction{1, 9}));
}

TEST(BlockRails, DealOutsideBlocksRoundRobin) {
    const Layout layout = Layout::of({0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3});
    const std::vector<int> nodeOf = {0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3};
    const BlockRails rails(layout, nodeOf);
    EXPECT_THAT(rails.carriedBy(0), ElementsAre(0, 8));
    EXPECT_THAT(rails.carriedBy(2), ElementsAre(2, 10));
    EXPECT_THAT(rails.carriedBy(5), ElementsAre(5));
    EXPECT_THAT(rails.carriedBy(9), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
    EXPECT_EQ(rails.helper(-1, 4), 10);  // nodes wrap around
}

}  // namespace
}  // namespace isthmus
