
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/algorithm/plan_runner.hpp"
#include "tests/unit/algorithm/plan_sets.hpp"
#include "tests/unit/algorithm/wire.hpp"

namespace isthmus {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// `data` nodes with data before `adding` nodes without, `each` ranks on every one.
Layout nodesOf(int data, int adding, int each) {
    Layout layout = equalNodes(data + adding, each);
    for (Rank rank = data * each; rank < layout.ranks(); ++rank) layout.summing.push_back(rank);
    return layout;
}

// BytePS, Theorem 1: with as many nodes that only add as there are with data every card carries the
// operand S once each way; with k < n of them 2 n (n - 1) S / (n^2 + k n - 2 k), in place of
// 2 (n - 1) S / n.
TEST(Summing, LoadsEveryCardAsTheTheoremSays) {
    for (const int each : {1, 2, 3}) {
        for (const auto& [n, k] :
             {std::pair(2, 2), {3, 3}, {4, 4}, {2, 1}, {3, 1}, {4, 2}, {5, 3}}) {
            const Layout layout = nodesOf(n, k, each);
            const Wire wire = wireOfEntry(Collective::kAllReduce, "two_level_summing", layout);
            const std::int64_t below = n * n + k * n - 2 * k;
            for (std::size_t node = 0; node < layout.nodes.size(); ++node) {
                EXPECT_EQ(wire.leavesNode[node] * below, 2 * n * (n - 1) * wire.blockElements);
                EXPECT_EQ(wire.entersNode[node], wire.leavesNode[node]);
                if (k == n) {
                    EXPECT_EQ(wire.leavesNode[node], wire.blockElements);
                }
                for (const Rank rank : layout.nodes[node]) {
                    EXPECT_EQ(wire.leavesRank[static_cast<std::size_t>(rank)] * each,
                              wire.leavesNode[node]);
                }
            }
        }
    }
}

// More of them than nodes with data: those still send their own, the others share the rest.
TEST(Summing, LeavesNodesWithDataTheirOwnWhenManyAdd) {
    const Wire wire = wireOfEntry(Collective::kAllReduce, "two_level_summing", nodesOf(2, 3, 1));
    for (const std::size_t node : {0, 1}) EXPECT_EQ(wire.leavesNode[node], wire.blockElements);
    for (const std::size_t node : {2, 3, 4}) {
        EXPECT_EQ(3 * wire.leavesNode[node], 2 * wire.blockElements);
    }
}

TEST(Summing, GoesByTheSharesOfALayout) {
    Layout layout = nodesOf(2, 2, 2);
    layout.shares = {0, 0, 3, 1};
    const Wire wire = wireOfEntry(Collective::kAllReduce, "two_level_summing", layout);
    EXPECT_EQ(4 * wire.leavesNode[2], 2 * 3 * wire.blockElements);
    EXPECT_EQ(4 * wire.leavesNode[3], 2 * wire.blockElements);
}

// Its ranks that only add take shares of what a node with data sends.
TEST(Summing, SharesANodesBytesAmongAllOfItsRanks) {
    Layout layout = equalNodes(2, 4);
    layout.summing = {2, 3, 6, 7};
    const Wire wire = wireOfEntry(Collective::kAllReduce, "two_level_summing", layout);
    for (const std::int64_t elements : wire.leavesRank) {
        EXPECT_EQ(4 * elements, wire.blockElements);
    }
}

TEST(Summing, AddsUpWhatRanksWithDataHaveInTheirOrder) {
    Layout layout = Layout::of({0, 1, 0, 2, 1, 0});
    layout.summing = {0, 4};
    const Algorithm* entry = findAlgorithm(Collective::kAllReduce, "summing");
    ASSERT_NE(entry, nullptr);
    const std::vector<Plan> plans = plansOf(*entry, layout, 0, Choice::kDirect);
    ASSERT_EQ(plans.size(), 6u);
    PlanRunner runner(plans, true, 7);
    const int chunks = plans.front().chunking.chunksPerBlock();
    for (const Rank rank : {1, 2, 3, 5}) {
        for (int chunk = 0; chunk < chunks; ++chunk) runner.setInput(rank, chunk, 1 << rank);
    }
    ASSERT_TRUE(runner.run());
    for (const Rank rank : {1, 2, 3, 5}) {
        for (int chunk = 0; chunk < chunks; ++chunk) {
            EXPECT_EQ(runner.output(rank, chunk), 2 + 4 + 8 + 32);
            EXPECT_EQ(runner.scaled(rank, chunk), 1);
            EXPECT_EQ(runner.foldOf(rank, chunk), (std::vector<Rank>{1, 2, 3, 5}));
        }
    }
}

TEST(Summing, IsTheOnlyAllReduceWhereRanksOnlyAddAndNoneElsewhere) {
    Layout layout = Layout::of({0, 0, 1});
    for (const Algorithm& entry : catalogue()) {
        if (entry.name.ends_with("summing")) {
            EXPECT_FALSE(entry.fits(layout));
        }
    }
    layout.summing = {1};
    layout.shares = {1, 1};
    for (const Algorithm& entry : catalogue()) {
        if (entry.collective != Collective::kAllReduce) continue;
        EXPECT_EQ(entry.fits(layout), entry.name.ends_with("summing")) << entry.name;
    }
    PlanRequest request{Collective::kAllReduce, 0, 0, Mapping::kNone, "ring"};
    EXPECT_THAT(makePlan(layout, request).status().what(), HasSubstr("with ranks that only add"));
    request.algorithm = "summing";
    EXPECT_TRUE(makePlan(layout, request).ok());
    for (const auto& wrong : {std::vector<Rank>{1, 0}, {0, 1, 2}, {3}, {-1}}) {
        layout.summing = wrong;
        EXPECT_THAT(makePlan(layout, request).status().what(), HasSubstr("some of all"));
    }
}

}  // namespace
}  // namespace isthmus
