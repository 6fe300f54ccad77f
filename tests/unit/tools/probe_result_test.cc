#include "tools/cli/probe_result.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace isthmus::cli {
namespace {

using testing::ElementsAre;

ProbeRank rankOf(int node, int localRank) {
    ProbeRank rank;
    rank.node = node;
    rank.localRank = localRank;
    rank.host = "host" + std::to_string(node);
    rank.card = "eth0";
    rank.unitBytes = 1500;
    rank.memoryBytes = 8'000'000'000;
    rank.flopsOfProcessor = 40e9;
    rank.processorShare = 0.5;
    rank.processors = 2;
    return rank;
}

/// What a card of so many bits carries of TCP's payload: 1448 of each 1514 bytes.
double payload(double bitsPerSecond) {
    return bitsPerSecond / 8 * 1448 / 1514;
}

/// All meetings between cards of these rates.
ProbeReadings readingsOf(const std::vector<double>& cards) {
    ProbeReadings readings;
    for (int node = 0; node < static_cast<int>(cards.size()); ++node) {
        readings.ranks.push_back(rankOf(node, 0));
        readings.ranks.push_back(rankOf(node, 1));
    }
    for (const auto& step : meetingsOf(static_cast<int>(cards.size()))) {
        for (const auto& [from, to] : step) {
            const double slower = std::min(cards[static_cast<std::size_t>(from)],
                                           cards[static_cast<std::size_t>(to)]);
            readings.alone.push_back({from, to, payload(slower)});
        }
    }
    return readings;
}

TEST(ProbeMeetings, EveryNodeSendsOnceAtEveryDistanceAndCardsAreNotShared) {
    for (int nodes = 2; nodes <= 70; ++nodes) {
        std::set<std::pair<int, int>> seen;
        for (const auto& step : meetingsOf(nodes)) {
            std::set<int> busy;
            for (const auto& [from, to] : step) {
                EXPECT_TRUE(seen.emplace(from, to).second) << nodes;
                EXPECT_TRUE(busy.insert(from).second) << nodes;
                EXPECT_TRUE(busy.insert(to).second) << nodes;
            }
        }
        std::size_t expected = 0;
        for (int distance = 1; distance <= std::max(nodes / 2, 1); distance *= 2) {
            for (int node = 0; node < nodes; ++node) {
                EXPECT_TRUE(seen.contains({node, (node + distance) % nodes})) << nodes;
                ++expected;
            }
        }
        EXPECT_EQ(seen.size(), expected) << nodes;
    }
}

TEST(ProbeResult, ACardIsAsFastAsTheBestThatItDidAndEqualsAreEqual) {
    ProbeReadings readings = readingsOf({10e9, 1e9, 10e9, 1e9});
    readings.alone[1].bytesPerSecond *= 0.97;
    const scheduler::Cluster cluster = clusterOf(readings);
    ASSERT_EQ(cluster.nodes.size(), 4U);
    EXPECT_EQ(cluster.text(), "4x2");
    for (const std::size_t node : {0U, 2U}) {
        EXPECT_NEAR(cluster.nodes[node].bitsPerSecond(), 10e9, 1) << node;
        EXPECT_NEAR(cluster.nodes[node + 1].bitsPerSecond(), 1e9, 1) << node;
    }
    EXPECT_EQ(cluster.communicatorBitsPerSecond, 0);
    // Half of a processor's 40 Gflop/s, half of the memory.
    EXPECT_EQ(cluster.nodes[3].devices[1].flopsPerSecond, 20e9);
    EXPECT_EQ(cluster.nodes[3].devices[1].memoryBytes, 4'000'000'000);
    EXPECT_EQ(cluster.nodes[3].devices[1].index, 1);
}

TEST(ProbeResult, WhoMetOnlySlowerNodesIsLookedAtAgain) {
    // Node 2 is fast; 0 and 4 met each other and slow ones.
    const std::vector<ProbeStream> streams = {
        {0, 1, 1}, {1, 2, 1}, {2, 3, 10}, {3, 4, 1}, {4, 0, 1}};
    const std::vector<double> rates = cardsOf(streams, 5);
    EXPECT_THAT(rates, ElementsAre(1, 1, 10, 10, 1));
    EXPECT_THAT(uncertainNodes(rates, streams), ElementsAre(0));
    EXPECT_THAT(uncertainNodes({5, 5}, {{0, 1, 5}}), ElementsAre());
}

TEST(ProbeResult, OneRankThatIsSlowerThanItsNodeIsACapOfCommunicators) {
    ProbeReadings readings = readingsOf({8e9, 8e9});
    readings.ofNodes = readings.alone;
    for (ProbeStream& stream : readings.alone) stream.bytesPerSecond /= 2;
    const scheduler::Cluster cluster = clusterOf(readings);
    EXPECT_NEAR(cluster.nodes[0].bitsPerSecond(), 8e9, 1);
    EXPECT_NEAR(cluster.communicatorBitsPerSecond, 4e9, 1);
}

TEST(ProbeResult, AcceleratorsAreUnknownAndHostsOfOneNameApart) {
    ProbeReadings readings = readingsOf({1e9, 1e9});
    for (ProbeRank& rank : readings.ranks) {
        rank.host = "gpu";
        rank.hasAccelerator = true;
    }
    const scheduler::Cluster cluster = clusterOf(readings);
    EXPECT_EQ(cluster.nodes[0].name, "gpu");
    EXPECT_EQ(cluster.nodes[1].name, "gpu-2");
    EXPECT_EQ(cluster.nodes[0].devices[0].flopsPerSecond, 0);
    EXPECT_EQ(cluster.nodes[0].devices[0].memoryBytes, 0);
}

TEST(ProbeResult, RowsAndRacksAreGroups) {
    ProbeReadings readings = readingsOf({1e9, 1e9});
    for (ProbeRank& rank : readings.ranks) rank.rack = "row0/rack" + std::to_string(rank.node);
    const scheduler::Cluster cluster = clusterOf(readings);
    EXPECT_THAT(cluster.nodes[1].at, ElementsAre("row0", "rack1"));
    ASSERT_EQ(cluster.levels.size(), 4U);
    EXPECT_EQ(cluster.levels[2].name, "rack");
    EXPECT_TRUE(scheduler::clusterFromJson(toJson(cluster)).ok());
}

TEST(ProbeResult, LevelsAreMediansOfWhatIsNear) {
    EXPECT_THAT(levelled({100, 103, 50, 101, 51}, 0.05), ElementsAre(101, 101, 51, 101, 51));
    EXPECT_THAT(levelled({}, 0.05), ElementsAre());
}

TEST(ProbeResult, LineOfAPayload) {
    EXPECT_NEAR(lineBitsPerSecond(119'550'858, 1500), 1e9, 10);  // 1448 / 1514 of 125 MB/s
    EXPECT_NEAR(lineBitsPerSecond(124'084'757, 9000), 1e9, 10);  // 8948 / 9014
}

}  // namespace
}  // namespace isthmus::cli
