#include "comm/cost/closed_form.hpp"

#include <gtest/gtest.h>

namespace isthmus {
namespace {

// alpha 10, beta 1, gamma 0.5, overhead 2.
constexpr FlatLink kLink{10, 1, 0.5, 2};

double secondsOf(Collective collective, const char* algorithm, int ranks, double bytes) {
    const std::optional<FlatCost> cost = flatCost(collective, algorithm, ranks, bytes);
    return cost ? cost->seconds(kLink) : -1;
}

TEST(FlatCost, OfAllReduceByHand) {
    // ring, 4 ranks, 400 bytes: 6 rounds, 600 sent, 300 reduced, 6 messages
    EXPECT_DOUBLE_EQ(secondsOf(Collective::kAllReduce, "ring", 4, 400), 60 + 600 + 150 + 12);
    EXPECT_DOUBLE_EQ(secondsOf(Collective::kAllReduce, "exchange", 4, 400), 20 + 600 + 150 + 12);
    EXPECT_DOUBLE_EQ(secondsOf(Collective::kAllReduce, "doubling", 4, 400), 20 + 800 + 400 + 4);
}

TEST(FlatCost, OfBlocksByHand) {
    EXPECT_DOUBLE_EQ(secondsOf(Collective::kAllGather, "ring", 5, 500), 40 + 400 + 8);
    EXPECT_DOUBLE_EQ(secondsOf(Collective::kAllGather, "bruck", 5, 500), 30 + 400 + 6);
    EXPECT_DOUBLE_EQ(secondsOf(Collective::kReduceScatter, "ring", 5, 500), 40 + 400 + 200 + 8);
    EXPECT_DOUBLE_EQ(secondsOf(Collective::kAllToAll, "pairwise", 5, 500), 40 + 400 + 8);
}

TEST(FlatCost, OfTreesByHand) {
    EXPECT_DOUBLE_EQ(secondsOf(Collective::kBroadcast, "binomial", 8, 100), 30 + 300 + 6);
    EXPECT_DOUBLE_EQ(secondsOf(Collective::kReduce, "binomial", 8, 100), 30 + 300 + 150 + 6);
    EXPECT_DOUBLE_EQ(secondsOf(Collective::kBarrier, "dissemination", 9, 0), 40 + 8);
}

TEST(FlatCost, OfHalvingAndTwoWayRingsByHand) {
    // 8 ranks: 3 rounds down (200 + 100 + 50 bytes sent and reduced), 3 up
    EXPECT_DOUBLE_EQ(secondsOf(Collective::kAllReduce, "halving", 8, 400), 60 + 700 + 175 + 12);
    // 6 ranks: 4 halve; 400 bytes fold in first and 400 are told last
    EXPECT_DOUBLE_EQ(secondsOf(Collective::kAllReduce, "halving", 6, 400),
                     60 + (800 + 600) + (200 + 150) + 12);
    EXPECT_DOUBLE_EQ(secondsOf(Collective::kReduceScatter, "halving", 8, 400), 30 + 350 + 175 + 6);
    // 5 ranks: 2 rounds each way, 2 messages in each
    EXPECT_DOUBLE_EQ(secondsOf(Collective::kAllReduce, "bidirectional_ring", 5, 500),
                     40 + 800 + 200 + 16);
    EXPECT_DOUBLE_EQ(secondsOf(Collective::kAllGather, "bidirectional_ring", 4, 400), 20 + 300 + 6);
}

TEST(FlatCost, OfDoubleTreesByHand) {
    // 9 ranks: 3 levels; half the bytes leave to each of two children, half to each of two parents
    EXPECT_DOUBLE_EQ(secondsOf(Collective::kAllReduce, "double_tree", 9, 100), 60 + 200 + 50 + 8);
    // the root, and 8 below it in trees of 3 levels
    EXPECT_DOUBLE_EQ(secondsOf(Collective::kBroadcast, "double_tree", 9, 100), 40 + 100 + 4);
    EXPECT_DOUBLE_EQ(secondsOf(Collective::kReduce, "double_tree", 9, 100), 40 + 100 + 50 + 4);
}

TEST(FlatCost, OfBruckByHand) {
    // 5 ranks, distances 1 2 3 4: 1, 1, 2, 1 digits to base 2; to base 4 each has one
    EXPECT_DOUBLE_EQ(secondsOf(Collective::kAllToAll, "bruck", 5, 500), 30 + 500 + 6);
    EXPECT_DOUBLE_EQ(secondsOf(Collective::kAllToAll, "bruck4", 5, 500), 20 + 400 + 8);
    // 16 ranks: 3 messages in each of 2 rounds
    EXPECT_DOUBLE_EQ(secondsOf(Collective::kAllGather, "bruck4", 16, 1600), 20 + 1500 + 12);
    EXPECT_DOUBLE_EQ(secondsOf(Collective::kAllToAll, "bruck4", 16, 1600), 20 + 2400 + 12);
}

TEST(FlatCost, OfButterfliesByHand) {
    // 12 is 4 x 3: 2 phases of 3 and 2 messages; of 12 blocks 9 and then 8 move on
    EXPECT_DOUBLE_EQ(secondsOf(Collective::kAllReduce, "butterfly", 12, 1200),
                     40 + 2200 + 550 + 20);
    EXPECT_DOUBLE_EQ(secondsOf(Collective::kReduceScatter, "butterfly", 12, 1200),
                     20 + 1100 + 550 + 10);
    EXPECT_DOUBLE_EQ(secondsOf(Collective::kAllGather, "butterfly", 12, 1200), 20 + 1100 + 10);
    EXPECT_DOUBLE_EQ(secondsOf(Collective::kAllToAll, "butterfly", 12, 1200), 20 + 1700 + 10);
}

TEST(FlatCost, IsNothingForOneRankAndUnknownForAStranger) {
    EXPECT_DOUBLE_EQ(secondsOf(Collective::kAllReduce, "ring", 1, 400), 0);
    EXPECT_FALSE(flatCost(Collective::kAllReduce, "teleport", 4, 400).has_value());
}

}  // namespace
}  // namespace isthmus
