#include "scheduler/search/bound.hpp"

#include <gtest/gtest.h>

#include <random>

#include "scheduler/search/exact.hpp"
#include "scheduler/search/matrices.hpp"
#include "scheduler/search/racks.hpp"
#include "tests/unit/scheduler/brute_force.hpp"

namespace isthmus::scheduler {
namespace {

using test::perAxis;

TEST(Bound, IsBelowEveryAssignmentOfSmallJobs) {
    std::mt19937 random(4);
    const Degrees shapes[] = {perAxis(2, 1, 1, 3, 1), perAxis(1, 1, 3, 1, 2),
                              perAxis(2, 2, 1, 1, 2), perAxis(1, 1, 2, 1, 4),
                              perAxis(2, 1, 1, 1, 4)};
    const std::vector<std::vector<int>> sixes = {{3, 3}, {4, 2}, {2, 2, 2}, {1, 2, 3}};
    const std::vector<std::vector<int>> eights = {{4, 4}, {5, 3}, {2, 2, 2, 2}, {3, 3, 2}};
    for (int round = 0; round < 30; ++round) {
        const Degrees degrees = shapes[random() % std::size(shapes)];
        const auto& layouts = ranksOf(degrees) == 6 ? sixes : eights;
        const std::vector<int>& sizes = layouts[random() % layouts.size()];
        AxisBytes bytes;
        for (const Axis axis : kAxes) bytes[axis] = 6 * static_cast<std::int64_t>(random() % 300);
        const Weights weights = *weightsOf(degrees, bytes);
        const NodeCost bound = lowerBound(Shape(degrees), weights, sizes);
        const NodeCost best = test::bestOfAll(degrees, bytes, sizes);
        EXPECT_LE(bound.most, best.most * weights.scale) << textOf(degrees);
        EXPECT_LE(bound.sum, best.sum * weights.scale) << textOf(degrees);
    }
}

// Nodes that hold whole tensor and data groups: the bound is reached, ends of pipes and all.
TEST(Bound, IsReachedWhereBlocksDivide) {
    const Degrees degrees = perAxis(8, 1, 1, 8, 8);
    const Weights weights = *weightsOf(degrees, perAxis<std::int64_t>(90'000, 0, 0, 700, 20));
    const std::vector<int> sizes(64, 8);
    // A node is a tensor group: 8 data rings, 8 chains with an edge to each side.
    EXPECT_EQ(lowerBound(Shape(degrees), weights, sizes).most, 8 * 700 + 16 * 20);
}

TEST(BranchAndBound, KeepsDearGroupsWhole) {
    const Degrees degrees = perAxis(4, 1, 1, 4, 2);
    const Weights weights = *weightsOf(degrees, perAxis<std::int64_t>(9000, 0, 0, 100, 30));
    const std::vector<int> sizes = {8, 12, 12};
    const NodeCost known{2000, 6000};
    EXPECT_EQ(wholeAxes(Shape(degrees), weights, sizes, known), perAxis(1, 1, 1, 4, 2));
    const ExactAnswer answer =
        branchAndBound(Shape(degrees), weights, sizes, known, {}, 1'000'000, {});
    EXPECT_EQ(answer.items, 8);
    EXPECT_TRUE(answer.isComplete);
    ASSERT_TRUE(answer.nodeOfRank);
    // As blocks of 4: the best of all 560 assignments of 8 blocks to 2 + 3 + 3.
    const NodeCost blocks = test::bestOfAll(perAxis(1, 1, 1, 4, 2),
                                            perAxis<std::int64_t>(0, 0, 0, 400, 120), {2, 3, 3});
    EXPECT_EQ(costOf(Shape(degrees), weights, *answer.nodeOfRank, 3), blocks);
}

// scheduler.md, section 5: 808,500 joint points of five axes, 84,000 of four.
TEST(Matrices, AreAllLookedAt) {
    const VolumesOf volumes = [](const Degrees&) {
        return std::optional<AxisBytes>(AxisBytes(100));
    };
    const Result<MatrixAnswer> five = everyMatrix({8, 16, 128}, Degrees(0), volumes, 3, {});
    ASSERT_TRUE(five.ok());
    EXPECT_EQ(five->points, 808'500U);
    EXPECT_EQ(five->best.size(), 3U);
    Degrees wanted(0);
    wanted[Axis::kExpert] = 1;
    EXPECT_EQ(everyMatrix({8, 16, 128}, wanted, volumes, 1, {})->points, 84'000U);
}

TEST(Matrices, CostWhatTheirPlacementCosts) {
    std::mt19937 random(6);
    const Cluster cluster = *clusterOf("2x3x4");
    for (int round = 0; round < 20; ++round) {
        AxisBytes bytes;
        for (const Axis axis : kAxes) bytes[axis] = static_cast<std::int64_t>(random() % 1000);
        const VolumesOf volumes = [&](const Degrees&) { return std::optional<AxisBytes>(bytes); };
        const Result<MatrixAnswer> answer = everyMatrix({2, 3, 4}, Degrees(0), volumes, 1000, {});
        ASSERT_TRUE(answer.ok());
        const MatrixPoint& point = answer->best[random() % answer->best.size()];
        const Shape shape(point.degrees);
        const Weights weights = *weightsOf(point.degrees, bytes);
        const std::vector<int> nodes = nodesOf(point.matrix);
        ASSERT_EQ(point.costs.size(), 2U);
        EXPECT_EQ(point.costs[0], costOf(shape, weights, nodes, 6));
        std::vector<int> racks;
        for (const int node : nodes) racks.push_back(node / 3);
        EXPECT_EQ(point.costs[1], costOf(shape, weights, racks, 2));
    }
}

TEST(Racks, NodesMoveToTheirKin) {
    // Two racks of two nodes of one rank; the pairs of a data group are torn apart.
    const Cluster cluster = *clusterOf("2x2x1");
    const Degrees degrees = perAxis(2, 1, 1, 2, 1);
    const Weights weights = *weightsOf(degrees, perAxis<std::int64_t>(10, 0, 0, 100, 0));
    const std::vector<int> nodes = arrangeRacks(cluster, Shape(degrees), weights, {0, 1, 2, 3});
    // Ranks 0 and 2 are replicas of each other.
    EXPECT_EQ(nodes[0] / 2, nodes[2] / 2);
    EXPECT_EQ(nodes[1] / 2, nodes[3] / 2);
}

}  // namespace
}  // namespace isthmus::scheduler
