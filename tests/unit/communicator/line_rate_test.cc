// Nodes whose cards differ.
#include <gtest/gtest.h>

#include <vector>

#include "tests/support/local_job.hpp"
#include "tests/unit/communicator/calls.hpp"

namespace isthmus::test {
namespace {

/// Layout::shares of a job whose ranks say so of their cards.
std::vector<int> sharesFor(const std::vector<int>& nodeOfRank, const std::vector<double>& rates) {
    LocalJob job(nodeOfRank);
    for (Rank rank = 0; rank < job.ranks(); ++rank)
        job.runtime(rank).setLineBitsPerSecond(rates[rank]);
    std::vector<std::vector<int>> shares(nodeOfRank.size());
    job.run([&](Rank rank, Communicator& communicator) {
        shares[rank] = communicator.layout().shares;
        std::vector<std::int32_t> whole(300'000, rank + 1);  // more than a small message
        const auto work = communicator.call(allReduceOf(whole), blocking());
        EXPECT_TRUE(work->status().ok()) << work->status().what();
        const int sum = communicator.ranks() * (communicator.ranks() + 1) / 2;
        EXPECT_EQ(whole, std::vector<std::int32_t>(whole.size(), sum));
    });
    for (const auto& each : shares) EXPECT_EQ(each, shares.front());
    return shares.front();
}

TEST(LineRates, OfANodeAreTheLargestOfItsRanks) {
    EXPECT_EQ(sharesFor({0, 0, 1, 2}, {0, 1e10, 1e10, 5e9}), (std::vector<int>{32, 32, 0}));
}

TEST(LineRates, ThatAreNotAllKnownOrEqualChangeNothing) {
    EXPECT_EQ(sharesFor({0, 0, 1, 2}, {1e10, 1e10, 0, 5e9}), std::vector<int>{});
    EXPECT_EQ(sharesFor({0, 1, 2}, {1e10, 1e10, 1e10}), std::vector<int>{});
}

}  // namespace
}  // namespace isthmus::test
