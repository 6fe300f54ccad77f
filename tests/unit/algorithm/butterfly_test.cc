#include "comm/algorithm/butterfly.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/algorithm/plan_sets.hpp"
#include "tests/unit/algorithm/wire.hpp"

namespace isthmus {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Radices, MultiplyToTheCountFoursFirst) {
    EXPECT_THAT(radicesOf(1), IsEmpty());
    EXPECT_THAT(radicesOf(2), ElementsAre(2));
    EXPECT_THAT(radicesOf(30), ElementsAre(2, 3, 5));
    EXPECT_THAT(radicesOf(31), ElementsAre(31));
    EXPECT_THAT(radicesOf(32), ElementsAre(4, 4, 2));
    EXPECT_THAT(radicesOf(49), ElementsAre(7, 7));
}

// Any count: the bytes of a ring.
TEST(Butterfly, SendsTheLeastFromEachRankAlone) {
    for (int ranks = 2; ranks <= 33; ++ranks) {
        const Layout alone = equalNodes(ranks, 1);
        const Wire all = wireOfEntry(Collective::kAllReduce, "butterfly", alone);
        const Wire scattered = wireOfEntry(Collective::kReduceScatter, "butterfly", alone);
        const Wire gathered = wireOfEntry(Collective::kAllGather, "butterfly", alone);
        for (std::size_t rank = 0; rank < alone.nodes.size(); ++rank) {
            EXPECT_EQ(all.leavesRank[rank] * ranks, 2 * all.blockElements * (ranks - 1)) << ranks;
            EXPECT_EQ(scattered.leavesRank[rank], (ranks - 1) * scattered.blockElements) << ranks;
            EXPECT_EQ(gathered.leavesRank[rank], (ranks - 1) * gathered.blockElements) << ranks;
        }
    }
}

// Digits of the place in the node come first: what is left to cross is the bound.
TEST(Butterfly, MeetsTheBoundOverEqualNodesOfAnyCount) {
    for (const auto& [nodes, ranks] : {std::pair(2, 3), {3, 4}, {6, 2}, {5, 5}, {7, 1}}) {
        const Layout layout = equalNodes(nodes, ranks);
        const Wire flat = wireOfEntry(Collective::kAllReduce, "butterfly", layout);
        const Wire rails = wireOfEntry(Collective::kAllReduce, "two_level_butterfly", layout);
        const Wire scattered = wireOfEntry(Collective::kReduceScatter, "butterfly", layout);
        const Wire gathered = wireOfEntry(Collective::kAllGather, "butterfly", layout);
        for (std::size_t node = 0; node < layout.nodes.size(); ++node) {
            EXPECT_EQ(flat.leavesNode[node] * nodes, 2 * flat.blockElements * (nodes - 1));
            EXPECT_EQ(rails.leavesNode[node] * nodes, 2 * rails.blockElements * (nodes - 1));
            EXPECT_EQ(scattered.leavesNode[node], (nodes - 1) * ranks * scattered.blockElements);
            EXPECT_EQ(gathered.entersNode[node], (nodes - 1) * ranks * gathered.blockElements);
        }
    }
}

int messagesOf(const Plan& plan) {
    return static_cast<int>(std::count_if(plan.steps.begin(), plan.steps.end(),
                                          [](const Step& s) { return s.verb == Verb::kSend; }));
}

// 12 is 4 x 3: three messages, then two, and an all-to-all passes 9 and then 8 of 12 blocks on.
TEST(Butterfly, SendsOneMessageForEachOtherDigit) {
    const Layout layout = equalNodes(12, 1);
    for (const auto& [collective, messages] : {std::pair(Collective::kAllReduce, 10),
                                               {Collective::kReduceScatter, 5},
                                               {Collective::kAllGather, 5},
                                               {Collective::kAllToAll, 5}}) {
        const Algorithm* entry = findAlgorithm(collective, "butterfly");
        ASSERT_NE(entry, nullptr);
        for (const Plan& plan : plansOf(*entry, layout, 0, Choice::kDirect)) {
            EXPECT_EQ(messagesOf(plan), messages) << nameOf(collective);
        }
    }
    const Wire wire = wireOfEntry(Collective::kAllToAll, "butterfly", layout);
    for (const std::int64_t blocks : wire.leavesRank) EXPECT_EQ(blocks, 9 + 8);
}

}  // namespace
}  // namespace isthmus
