#include "scheduler/search/search.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "comm/base/knobs.hpp"
#include "scheduler/search/orders.hpp"
#include "tests/unit/scheduler/brute_force.hpp"

namespace isthmus::scheduler {
namespace {

using test::perAxis;

Candidate found(const std::string& nodes, const Degrees& degrees, const AxisBytes& bytes) {
    Question question;
    question.cluster = *clusterOf(nodes);
    question.wanted = degrees;
    question.volumes = [&](const Degrees&) { return bytes; };
    const Result<SearchAnswer> answer = search(question, {});
    EXPECT_TRUE(answer.ok()) << answer.status().what();
    EXPECT_LE(answer->best.front().bound.most, answer->best.front().cost.most);
    EXPECT_EQ(answer->lowerBound, answer->best.front().bound.most);
    EXPECT_EQ(answer->isOptimal, answer->best.front().isOptimal);
    return answer->best.front();
}

NodeCost orderCost(const std::string& nodes, const Degrees& degrees, const AxisBytes& bytes,
                   const std::vector<Axis>& fastestFirst) {
    const std::vector<int> sizes = clusterOf(nodes)->sizes();
    return costOf(Shape(degrees), *weightsOf(degrees, bytes),
                  fillInTurn(sequenceOf(Shape(degrees), fastestFirst), sizes),
                  static_cast<int>(sizes.size()));
}

/// The cheapest dearest node, and the dearest, over the orders of the axes that are split.
std::pair<std::int64_t, std::int64_t> bestAndWorst(const std::string& nodes, const Degrees& degrees,
                                                   const AxisBytes& bytes) {
    std::int64_t best = std::numeric_limits<std::int64_t>::max();
    std::int64_t worst = 0;
    for (const NamedOrder& order : everyOrder(degrees)) {
        const std::int64_t most = orderCost(nodes, degrees, bytes, order.fastestFirst).most;
        best = std::min(best, most);
        worst = std::max(worst, most);
    }
    return {best, worst};
}

const Degrees kTwoEach = perAxis(2, 1, 1, 2, 2);
const AxisBytes kMegabytes = perAxis<std::int64_t>(3200, 0, 0, 800, 200);

// scheduler.md, section 5: brute force over all assignments of 8 ranks.
TEST(Search, FindsThePublishedOptima) {
    struct Row {
        const char* nodes;
        AxisBytes bytes;
        NodeCost optimum;
        std::int64_t bestOrder;
        std::int64_t worstOrder;
    };
    const Row rows[] = {
        {"4+4", kMegabytes, {800, 1600}, 800, 12800},
        {"5+3", kMegabytes, {4600, 9200}, 4600, 10600},
        {"3+3+2", kMegabytes, {5800, 12400}, 6200, 12200},
        {"4+4", perAxis<std::int64_t>(3200, 0, 0, 1, 200), {4, 8}, 4, 12800},
    };
    for (const Row& row : rows) {
        const Candidate candidate = found(row.nodes, kTwoEach, row.bytes);
        EXPECT_EQ(candidate.cost, row.optimum) << row.nodes;
        EXPECT_TRUE(candidate.isOptimal) << row.nodes;
        EXPECT_TRUE(candidate.isSumOptimal) << row.nodes;
        EXPECT_EQ(bestAndWorst(row.nodes, kTwoEach, row.bytes),
                  std::make_pair(row.bestOrder, row.worstOrder))
            << row.nodes;
    }
}

// The table's names of orders, tensor fastest first: tdp is Megatron's, dpt has data fastest.
TEST(Search, NamedOrdersCostWhatTheTableSays) {
    using enum Axis;
    EXPECT_EQ(orderCost("4+4", kTwoEach, kMegabytes, {kTensor, kData, kPipe, kContext, kExpert}),
              (NodeCost{800, 1600}));
    EXPECT_EQ(
        orderCost("4+4", kTwoEach, kMegabytes, {kData, kPipe, kTensor, kContext, kExpert}).most,
        12800);
    EXPECT_EQ(
        orderCost("3+3+2", kTwoEach, kMegabytes, {kPipe, kData, kTensor, kContext, kExpert}).most,
        12200);
}

/// Sizes that sum up to `ranks`, from 2 nodes on.
std::vector<int> unequalSizes(int ranks, int nodes, std::mt19937& random) {
    std::vector<int> sizes(static_cast<std::size_t>(nodes), 1);
    for (int left = ranks - nodes; left > 0; --left) ++sizes[random() % sizes.size()];
    return sizes;
}

std::string textOf(const std::vector<int>& sizes) {
    std::string text;
    for (const int size : sizes) text += (text.empty() ? "" : "+") + std::to_string(size);
    return text;
}

TEST(Search, IsTheBestOfEveryAssignmentOfEightRanks) {
    std::mt19937 random(7);
    const Degrees shapes[] = {kTwoEach,
                              perAxis(2, 2, 1, 2, 1),
                              perAxis(4, 1, 1, 2, 1),
                              perAxis(2, 1, 1, 1, 4),
                              perAxis(1, 1, 4, 2, 1),
                              perAxis(2, 1, 2, 1, 2),
                              perAxis(1, 1, 1, 2, 4),
                              perAxis(1, 1, 1, 1, 8)};
    for (int round = 0; round < 30; ++round) {
        const Degrees degrees = shapes[random() % std::size(shapes)];
        const std::vector<int> sizes = unequalSizes(8, 2 + static_cast<int>(random() % 3), random);
        AxisBytes bytes;
        for (const Axis axis : kAxes) bytes[axis] = 3 * static_cast<std::int64_t>(random() % 2000);
        const Candidate candidate = found(textOf(sizes), degrees, bytes);
        EXPECT_EQ(candidate.cost, test::bestOfAll(degrees, bytes, sizes))
            << textOf(sizes) << ", " << textOf(degrees);
        EXPECT_TRUE(candidate.isOptimal && candidate.isSumOptimal);
        EXPECT_EQ(candidate.cost, test::costByMessages(degrees, bytes, candidate.nodeOfRank,
                                                       static_cast<int>(sizes.size())));
    }
}

// ISTHMUS_TEST_RANDOM_CASES=200 is the full measure.
TEST(Search, IsNeverWorseThanAnOrderOnLargeUnequalClusters) {
    const std::optional<std::string> asked = environmentVariable("ISTHMUS_TEST_RANDOM_CASES");
    const int cases = asked ? std::stoi(*asked) : 3;
    std::mt19937 random(11);
    double gaps = 0;
    int certified = 0;
    for (int round = 0; round < cases; ++round) {
        const int power = 6 + static_cast<int>(random() % 5);
        Degrees degrees(1);
        for (int bit = 0; bit < power; ++bit) degrees[kAxes[random() % kAxes.size()]] *= 2;
        const int ranks = 1 << power;
        const std::vector<int> sizes =
            unequalSizes(ranks, ranks / 8 + static_cast<int>(random() % 4), random);
        AxisBytes bytes;
        for (const Axis axis : kAxes) bytes[axis] = static_cast<std::int64_t>(random() % 1'000'000);
        const std::string nodes = textOf(sizes);
        const Candidate candidate = found(nodes, degrees, bytes);
        const std::int64_t order = bestAndWorst(nodes, degrees, bytes).first;
        EXPECT_LE(candidate.cost.most, order) << nodes << ", " << textOf(degrees);
        gaps += candidate.cost.most == 0 ? 0
                                         : 1 - static_cast<double>(candidate.bound.most) /
                                                   static_cast<double>(candidate.cost.most);
        certified += static_cast<int>(candidate.isOptimal);
    }
    std::printf("%d cases: mean gap to the lower bound %.1f %%, %d certified\n", cases,
                100 * gaps / cases, certified);
}

TEST(Search, RefusesDegreesThatLeaveRanksOver) {
    Question question;
    question.cluster = *clusterOf("4+4");
    question.wanted = perAxis(3, 1, 1, 2, 1);
    question.volumes = [](const Degrees&) { return AxisBytes(1); };
    EXPECT_EQ(search(question, {}).status().what(),
              "tensor 3, data 2 is 6 ranks, the cluster has 8 devices: 2 ranks unused");
    question.wanted = perAxis(4, 1, 1, 4, 1);
    EXPECT_EQ(search(question, {}).status().what(),
              "tensor 4, data 4 is 16 ranks, the cluster has 8 devices: 8 devices missing");
}

}  // namespace
}  // namespace isthmus::scheduler
