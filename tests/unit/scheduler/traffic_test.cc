#include <gtest/gtest.h>

#include <random>

#include "scheduler/search/seating.hpp"
#include "scheduler/traffic/collective_bytes.hpp"
#include "scheduler/traffic/node_cost.hpp"
#include "tests/unit/scheduler/brute_force.hpp"

namespace isthmus::scheduler {
namespace {

using test::perAxis;

std::vector<int> nodesOf(int nodes, int members) {
    return std::vector<int>(static_cast<std::size_t>(nodes), members);
}

// scheduler.md 4.1: flat over hierarchical is [(k - 1) / k] / [(m - 1) / m].
TEST(Traffic, FlatRingOverTwoLevelsIsTheFormulasRatio) {
    struct Row {
        int ranks;
        int nodes;
        double ratio;
    };
    for (const Row& row : {Row{16, 2, 1.875}, {32, 4, 1.2917}, {64, 8, 1.125}, {256, 32, 1.0282}}) {
        const std::vector<int> members = nodesOf(row.nodes, row.ranks / row.nodes);
        const std::int64_t bytes = 256 * 1024;
        for (const Transfer transfer :
             {Transfer::kAllReduce, Transfer::kAllGather, Transfer::kReduceScatter}) {
            const auto flat = flatTraffic(transfer, bytes, members);
            const auto two = twoLevelTraffic(transfer, bytes, members);
            EXPECT_NEAR(static_cast<double>(flat[1].egress) / static_cast<double>(two[1].egress),
                        row.ratio, 1e-4);
        }
    }
}

TEST(Traffic, KnownBytes) {
    // 4 ranks on 2 nodes, 800 bytes: a ring sends 3/4, each of two levels 1/2.
    EXPECT_EQ(flatTraffic(Transfer::kAllGather, 800, nodesOf(2, 2))[0], (NodeTraffic{600, 600}));
    EXPECT_EQ(flatTraffic(Transfer::kAllReduce, 800, nodesOf(2, 2))[1], (NodeTraffic{1200, 1200}));
    EXPECT_EQ(twoLevelTraffic(Transfer::kAllReduce, 800, nodesOf(2, 2))[0],
              (NodeTraffic{800, 800}));
    // Round robin: the ring leaves a node with every rank.
    EXPECT_EQ(flatTraffic(Transfer::kAllGather, 800, nodesOf(2, 2), nodesOf(2, 2))[0],
              (NodeTraffic{1200, 1200}));
    // 3 + 1 ranks: an all-gather brings (1 - k_i / k) S into node i.
    const std::vector<int> unequal = {3, 0, 1};
    const auto gathered = twoLevelTraffic(Transfer::kAllGather, 800, unequal);
    EXPECT_EQ(gathered[0], (NodeTraffic{600, 200}));
    EXPECT_EQ(gathered[1], NodeTraffic{});
    EXPECT_EQ(gathered[2], (NodeTraffic{200, 600}));
    // An all-to-all: k_i B (k - k_i) / k.
    EXPECT_EQ(flatTraffic(Transfer::kAllToAll, 800, unequal)[0], (NodeTraffic{600, 600}));
    // Inside one node nothing crosses.
    EXPECT_EQ(flatTraffic(Transfer::kAllReduce, 800, nodesOf(1, 4))[0], NodeTraffic{});
    EXPECT_EQ(ringBytesOfRank(Transfer::kAllReduce, 800, 4), 1200);
}

TEST(Traffic, WhatLeavesEnters) {
    std::mt19937 random(3);
    for (int round = 0; round < 200; ++round) {
        std::vector<int> members(2 + random() % 5);
        for (int& count : members) count = static_cast<int>(random() % 4);
        const std::int64_t bytes = random() % 10'000;
        for (const Transfer transfer : {Transfer::kAllReduce, Transfer::kAllGather,
                                        Transfer::kReduceScatter, Transfer::kAllToAll}) {
            for (const auto& nodes : {flatTraffic(transfer, bytes, members),
                                      twoLevelTraffic(transfer, bytes, members)}) {
                NodeTraffic sum;
                for (const NodeTraffic& node : nodes) {
                    sum.egress += node.egress;
                    sum.ingress += node.ingress;
                }
                EXPECT_EQ(sum.egress, sum.ingress);
            }
        }
    }
}

// collectives.md 2.4: cards of 1, 1, 1 and a half: even shares take 3 S, water-filled ones 2 S.
TEST(Traffic, SharesFollowTheCards) {
    const std::vector<double> rates = {1e9, 1e9, 1e9, 0.5e9};
    const std::vector<std::int64_t> shares = sharesByRate(6'000'000, rates);
    EXPECT_EQ(shares[3], 0);
    const auto nodes = twoLevelTraffic(Transfer::kAllReduce, 6'000'000, nodesOf(4, 2), shares);
    EXPECT_EQ(nodes[3].egress, 6'000'000);
    EXPECT_NEAR(static_cast<double>(nodes[0].egress), 10'000'000, 2);
    EXPECT_EQ(sharesByRate(9, std::vector<double>{1, 2}), (std::vector<std::int64_t>{5, 4}));
}

// scheduler.md 4.1: expected remote nodes of a token for K = 8.
TEST(Traffic, OneCopyANode) {
    const std::int64_t many = 1'000'000;
    // 7 (1 - (7/8)^8) = 4.5947376 and so on, rounded up.
    EXPECT_EQ(dispatchOncePerNode(many, 1, 2, 8), 996'094);
    EXPECT_EQ(dispatchOncePerNode(many, 1, 4, 8), 2'699'662);
    EXPECT_EQ(dispatchOncePerNode(many, 1, 8, 8), 4'594'738);
    EXPECT_EQ(dispatchToExperts(many, 1, 2, 8), 4 * many);
    EXPECT_EQ(dispatchToExperts(many, 1, 4, 8), 6 * many);
    EXPECT_EQ(dispatchToExperts(many, 1, 8, 8), 7 * many);
}

/// Random nodes for the ranks of a shape.
std::vector<int> anyNodes(int ranks, int nodes, std::mt19937& random) {
    std::vector<int> nodeOfRank;
    for (int rank = 0; rank < ranks; ++rank) {
        nodeOfRank.push_back(static_cast<int>(random()) % nodes);
        nodeOfRank.back() = std::abs(nodeOfRank.back());
    }
    return nodeOfRank;
}

TEST(Traffic, NodesPayWhatTheirMessagesSum) {
    std::mt19937 random(5);
    const Degrees degrees = perAxis(2, 3, 4, 2, 3);
    for (int round = 0; round < 20; ++round) {
        const std::vector<int> nodeOfRank = anyNodes(144, 7, random);
        const AxisBytes bytes = perAxis<std::int64_t>(700, 41, 33, 5, 11);
        const auto wires = test::sendEverything(degrees, bytes, nodeOfRank, 7);
        const auto nodes = bytesOfNodes(Shape(degrees), bytes, nodeOfRank, 7);
        for (std::size_t node = 0; node < nodes.size(); ++node) {
            std::int64_t sum = 0;
            for (const Axis axis : kAxes) sum += nodes[node][axis];
            EXPECT_EQ(sum, wires[node].egress);
            EXPECT_EQ(sum, wires[node].ingress);
        }
    }
}

TEST(Traffic, AnAllToAllThatDoesNotDivideIsRoundedOnce) {
    // 4 ranks on 2 x 2, 100 bytes to 3 others: 2 * 2 * 100 / 3 = 133.3 leave a node.
    const Degrees degrees = perAxis(1, 1, 4, 1, 1);
    const AxisBytes bytes = perAxis<std::int64_t>(0, 0, 100, 0, 0);
    const Result<Weights> weights = weightsOf(degrees, bytes);
    ASSERT_TRUE(weights.ok());
    EXPECT_EQ(costOf(Shape(degrees), *weights, std::vector<int>{0, 0, 1, 1}, 2),
              (NodeCost{134, 268}));
}

TEST(Traffic, MovesKeepTheAccounts) {
    std::mt19937 random(9);
    const Degrees degrees = perAxis(2, 3, 4, 2, 3);
    const Shape shape(degrees);
    const Weights weights = *weightsOf(degrees, perAxis<std::int64_t>(700, 41, 33, 5, 11));
    Seating seating(shape, weights, anyNodes(144, 7, random), 7);
    for (int move = 0; move < 300; ++move) {
        seating.swap(static_cast<int>(random() % 144), static_cast<int>(random() % 144));
    }
    const Seating again(shape, weights, seating.nodeOfRank(), 7);
    for (int node = 0; node < 7; ++node) EXPECT_EQ(seating.units(node), again.units(node));
}

}  // namespace
}  // namespace isthmus::scheduler
