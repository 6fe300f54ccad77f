#include "comm/cost/bounds.hpp"

#include <gtest/gtest.h>

namespace isthmus {
namespace {

// Nodes of 3, 2 and 1 ranks; an operand of 600 bytes has blocks of 100.
Layout threeTwoOne() {
    return Layout::of({0, 0, 0, 1, 1, 2});
}

Layout twoByTwo() {
    return Layout::of({0, 0, 1, 1});
}

TEST(WireBound, IsNothingInsideOneNode) {
    for (int index = 0; index < kCollectives; ++index) {
        const WireBound bound =
            wireBound(static_cast<Collective>(index), Layout::of({0, 0, 0}), 1 << 20);
        EXPECT_EQ(bound.busiest, 0u);
        EXPECT_EQ(bound.nodes.front(), WireBytes{});
    }
}

TEST(WireBound, OfTwoByTwoAt64MegabytesIsThatOfTheTable) {
    const std::uint64_t size = 64 << 20;
    const Layout layout = twoByTwo();
    EXPECT_EQ(wireBound(Collective::kAllReduce, layout, size).busiest, 67108864u);
    EXPECT_EQ(wireBound(Collective::kAllGather, layout, size).busiest, 33554432u);
    EXPECT_EQ(wireBound(Collective::kReduceScatter, layout, size).busiest, 33554432u);
    EXPECT_EQ(wireBound(Collective::kAllToAll, layout, size).busiest, 67108864u);
    EXPECT_EQ(wireBound(Collective::kBroadcast, layout, size).busiest, 67108864u);
    EXPECT_EQ(wireBound(Collective::kReduce, layout, size).busiest, 67108864u);
    EXPECT_EQ(wireBound(Collective::kGather, layout, size).busiest, 33554432u);
    EXPECT_EQ(wireBound(Collective::kScatter, layout, size).busiest, 33554432u);
    EXPECT_EQ(wireBound(Collective::kBarrier, layout, size).busiest, 0u);
}

TEST(WireBound, OfUnequalNodesCountsWhatEachLacks) {
    const WireBound gathered = wireBound(Collective::kAllGather, threeTwoOne(), 600);
    EXPECT_EQ(gathered.nodes, (std::vector<WireBytes>{{300, 300}, {200, 400}, {100, 500}}));
    EXPECT_EQ(gathered.busiest, 500u);
    const WireBound scattered = wireBound(Collective::kReduceScatter, threeTwoOne(), 600);
    EXPECT_EQ(scattered.nodes, (std::vector<WireBytes>{{300, 300}, {400, 200}, {500, 100}}));
    const WireBound exchanged = wireBound(Collective::kAllToAll, threeTwoOne(), 600);
    EXPECT_EQ(exchanged.nodes, (std::vector<WireBytes>{{900, 900}, {800, 800}, {500, 500}}));
    EXPECT_EQ(exchanged.busiest, 900u);
}

TEST(WireBound, OfAllReduceIgnoresHowManyRanksANodeHas) {
    EXPECT_EQ(wireBound(Collective::kAllReduce, threeTwoOne(), 600).busiest, 800u);  // 2 * 2/3
    EXPECT_EQ(wireBound(Collective::kAllReduce, Layout::of({0, 1, 2}), 600).busiest, 800u);
}

// Theirs once each way is all that nodes with data must carry when as many others add for them.
TEST(WireBound, OfAllReduceCountsNodesThatOnlyAdd) {
    Layout layout = Layout::of({0, 1, 2, 3, 3});
    layout.summing = {2};
    const WireBound one = wireBound(Collective::kAllReduce, layout, 600);
    EXPECT_EQ(one.busiest, 600u);  // 2 * 2 / 4
    EXPECT_EQ(one.nodes, (std::vector<WireBytes>{{600, 600}, {600, 600}, {0, 0}, {600, 600}}));
    layout.summing = {4};  // its node holds data still
    EXPECT_EQ(wireBound(Collective::kAllReduce, layout, 600).busiest, 900u);
    layout.summing = {1, 2, 3, 4};
    EXPECT_EQ(wireBound(Collective::kAllReduce, layout, 600).busiest, 0u);
    EXPECT_EQ(wireBound(Collective::kAllGather, layout, 500).busiest, 400u);  // as ever
}

TEST(WireBound, OfRootedCallsDependsOnTheRootsNode) {
    const WireBound fromOne = wireBound(Collective::kScatter, threeTwoOne(), 600, 5);
    EXPECT_EQ(fromOne.nodes, (std::vector<WireBytes>{{0, 300}, {0, 200}, {500, 0}}));
    const WireBound toThree = wireBound(Collective::kGather, threeTwoOne(), 600, 1);
    EXPECT_EQ(toThree.nodes, (std::vector<WireBytes>{{0, 300}, {200, 0}, {100, 0}}));
    const WireBound broadcast = wireBound(Collective::kBroadcast, threeTwoOne(), 600, 3);
    EXPECT_EQ(broadcast.nodes, (std::vector<WireBytes>{{0, 600}, {600, 0}, {0, 600}}));
    const WireBound reduced = wireBound(Collective::kReduce, threeTwoOne(), 600, 3);
    EXPECT_EQ(reduced.nodes, (std::vector<WireBytes>{{600, 0}, {0, 600}, {600, 0}}));
}

TEST(WireBound, DoesNotOverflow) {
    const std::uint64_t size = std::uint64_t{1} << 62;
    EXPECT_EQ(wireBound(Collective::kAllGather, twoByTwo(), size).busiest, size / 2);
}

// limits.md 5b: 64 MB over two nodes at 5 Gbit/s takes 112 ms at least.
TEST(BoundSeconds, MatchesTheMeasuredGoodputOfALine) {
    LinkModel model;
    model.wireBytesPerSecond = goodputOf(5e9);
    EXPECT_NEAR(model.wireBytesPerSecond, 0.598e9, 0.0005e9);
    EXPECT_NEAR(boundSeconds(Collective::kAllReduce, twoByTwo(), 64 << 20, 0, model), 0.1122,
                0.0002);
    EXPECT_NEAR(boundSeconds(Collective::kAllReduce, twoByTwo(), 64 << 20, 0, model, 2), 0.0561,
                0.0001);
}

// 30 bytes over three nodes: 120 bytes must move in all, and 30 out of each node.
TEST(BoundSeconds, OfCardsThatDifferIsThatOfAllOrOfTheSlowest) {
    const Layout layout = Layout::of({0, 1, 2});
    LinkModel model;
    const auto seconds = [&](std::vector<double> rates, Collective collective) {
        model.cardBytesPerSecond = std::move(rates);
        return boundSeconds(collective, layout, 30, 0, model);
    };
    EXPECT_DOUBLE_EQ(seconds({2, 2, 2}, Collective::kAllReduce), 20);
    EXPECT_DOUBLE_EQ(seconds({3, 3, 2}, Collective::kAllReduce), 15);
    EXPECT_DOUBLE_EQ(seconds({2, 2, 1}, Collective::kAllReduce), 30);
    EXPECT_DOUBLE_EQ(seconds({2, 2, 1}, Collective::kAllGather), 20);  // 20 bytes into each
}

}  // namespace
}  // namespace isthmus
