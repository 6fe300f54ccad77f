#include "tools/cli/reach_result.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

namespace isthmus::cli {
namespace {

PairReach pairOf(Rank one, Rank other, double latencySeconds) {
    PairReach pair;
    pair.one = one;
    pair.other = other;
    pair.chosen = "tcp";
    pair.ways = {{"ucx", false, 0, 0, "no library"}, {"tcp", true, latencySeconds, 2e9, ""}};
    return pair;
}

TEST(ReachResult, PairsThatAreAlikeAreToldTogether) {
    ClusterReach reach;
    reach.ranks = {{"node0 pid 1", {"shm", "tcp"}, {{"ucx", false, 0, 0, "no library"}}},
                   {"node1 pid 1", {"shm", "tcp"}, {}},
                   {"node2 pid 1", {"shm", "tcp"}, {}}};
    reach.pairs = {pairOf(0, 1, 5e-6), pairOf(0, 2, 9e-6), pairOf(1, 2, 5e-6)};
    reach.pairs[2].isOneNode = true;
    reach.pairs[2].chosen = "shm";
    reach.pairs[2].ways = {{"shm", true, 1e-6, 4e9, ""},
                           {"tcp", true, 5e-6, 1e9, "it comes after shm"}};
    EXPECT_EQ(reachText(reach),
              "rank 0 (node0 pid 1): shm tcp; not ucx: no library\n"
              "rank 1 (node1 pid 1): shm tcp\n"
              "rank 2 (node2 pid 1): shm tcp\n"
              "2 pairs between nodes: 0-1, 0-2\n"
              "    ucx   not proved: no library\n"
              "  * tcp   5 to 9 us, 2 GB/s\n"
              "1 pair inside a node: 1-2\n"
              "  * shm   1 us, 4 GB/s\n"
              "    tcp   5 us, 1 GB/s; it comes after shm\n");
    EXPECT_TRUE(reach.isHealthy());
}

TEST(ReachResult, APairWithoutAProvedWayIsUnhealthy) {
    ClusterReach reach;
    reach.ranks.resize(2);
    reach.pairs = {pairOf(0, 1, 5e-6)};
    reach.pairs[0].ways[1] = {"tcp", false, 0, 0, "refused"};
    EXPECT_FALSE(reach.isHealthy());
    EXPECT_NE(reachText(reach).find("* tcp   not proved: refused"), std::string::npos);
    reach.pairs[0].chosen.clear();
    EXPECT_FALSE(reach.isHealthy());
    EXPECT_NE(reachText(reach).find("nothing leads there"), std::string::npos);
}

TEST(ReachResult, AsJson) {
    ClusterReach reach;
    reach.ranks = {{"node0 pid 1", {"tcp"}, {}}, {"node1 pid 1", {"tcp"}, {}}};
    reach.pairs = {pairOf(0, 1, 5e-6)};
    const auto document = nlohmann::json::parse(reachJson(reach));
    EXPECT_EQ(document["ranks"][1]["place"], "node1 pid 1");
    const auto& pair = document["pairs"][0];
    EXPECT_EQ(pair["ranks"], nlohmann::json({0, 1}));
    EXPECT_EQ(pair["chosen"], "tcp");
    EXPECT_EQ(pair["healthy"], true);
    EXPECT_EQ(pair["ways"][0]["why"], "no library");
    EXPECT_EQ(pair["ways"][1]["latency_seconds"], 5e-6);
}

TEST(ReachResult, EveryRankMeetsEveryOtherOnce) {
    for (int ranks = 1; ranks <= 33; ++ranks) {
        std::set<std::pair<Rank, Rank>> met;
        for (const std::vector<Rank>& partners : roundsOf(ranks)) {
            ASSERT_EQ(static_cast<int>(partners.size()), ranks);
            for (Rank rank = 0; rank < ranks; ++rank) {
                const Rank partner = partners[static_cast<std::size_t>(rank)];
                if (partner < 0) continue;
                EXPECT_EQ(partners[static_cast<std::size_t>(partner)], rank);
                EXPECT_NE(partner, rank);
                if (rank > partner) continue;
                EXPECT_TRUE(met.insert({rank, partner}).second);
            }
        }
        EXPECT_EQ(static_cast<int>(met.size()), ranks * (ranks - 1) / 2) << ranks;
    }
}

}  // namespace
}  // namespace isthmus::cli
