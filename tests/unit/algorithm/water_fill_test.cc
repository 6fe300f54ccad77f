#include "comm/algorithm/water_fill.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace isthmus {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Pointwise;

std::vector<Owner> cards(int contributors, int helpers, double bytesPerSecond = 1) {
    std::vector<Owner> owners(static_cast<std::size_t>(contributors), {bytesPerSecond, true});
    owners.insert(owners.end(), static_cast<std::size_t>(helpers), {bytesPerSecond, false});
    return owners;
}

// BytePS, OSDI 2020, Theorem 1: n machines with GPUs and k without, cards of rate B. A machine with
// GPUs owns (n - k) / (n^2 + k n - 2 k), one without 2 (n - 1) / (the same), and the time is
// 2 n (n - 1) / (the same) / B.
TEST(WaterFill, ReproducesTheoremOneOfBytePs) {
    for (int n = 2; n <= 32; ++n) {
        for (int k = 0; k <= n; ++k) {
            const double below = n * n + k * n - 2 * k;
            const WaterFill fill = waterFill(cards(n, k, 4));
            EXPECT_NEAR(fill.secondsPerByte, 2.0 * n * (n - 1) / below / 4, 1e-12) << n << " " << k;
            for (int owner = 0; owner < n + k; ++owner) {
                const double share = (owner < n ? n - k : 2.0 * (n - 1)) / below;
                EXPECT_NEAR(fill.shares[static_cast<std::size_t>(owner)], share, 1e-12)
                    << n << " " << k;
            }
        }
    }
}

// The numbers of the theorem in two places: 8 and 4 are 27 % quicker than 8 alone.
TEST(WaterFill, GivesTheoremsNumbers) {
    EXPECT_NEAR(waterFill(cards(8, 0)).secondsPerByte, 1.75, 0.005);
    EXPECT_NEAR(waterFill(cards(8, 4)).secondsPerByte, 1.27, 0.005);
    EXPECT_NEAR(waterFill(cards(32, 0)).secondsPerByte, 1.94, 0.005);
    EXPECT_NEAR(waterFill(cards(32, 8)).secondsPerByte, 1.57, 0.005);
    EXPECT_NEAR(waterFill(cards(8, 8)).secondsPerByte, 1, 1e-12);
}

// The same as small whole numbers: what the cuts of plans are made of.
TEST(EqualCards, AreTheTheoremInWholeNumbers) {
    for (int n = 2; n <= 12; ++n) {
        for (int k = 0; k <= n + 3; ++k) {
            std::vector<bool> contributes(static_cast<std::size_t>(n), true);
            contributes.insert(contributes.end(), static_cast<std::size_t>(k), false);
            const std::vector<int> shares = equalCards(contributes);
            const double units = std::accumulate(shares.begin(), shares.end(), 0);
            const int helpers = std::min(n, k);
            const double below = n * n + helpers * n - 2 * helpers;
            EXPECT_NEAR(shares.front() / units, (n - helpers) / below, 1e-12) << n << " " << k;
            if (k == 0) continue;
            EXPECT_NEAR(shares.back() / units, k > n ? 1.0 / k : 2 * (n - 1) / below, 1e-12)
                << n << " " << k;
        }
    }
    EXPECT_THAT(equalCards({true, true}), ElementsAre(1, 1));
    EXPECT_THAT(equalCards({false, true, false}), ElementsAre(0, 1, 0));
}

// Two cards that only help, one of half the rate: 3 (t - 1) + t / 3 + t / 6 = 1, so t = 8 / 7, and
// of 64 units they take 24.4 and 12.2, the others 9.1 each. By equal cards t would be 2.2.
TEST(UnequalShares, OfHelpersGoByTheirCards) {
    const std::vector<double> rates = {1, 1, 1, 1, 0.5};
    EXPECT_THAT(unequalShares(rates, {true, true, true, false, false}),
                ElementsAre(9, 9, 9, 25, 12));
    EXPECT_TRUE(
        unequalShares(std::vector<double>(5, 1.0), {true, true, true, false, false}).empty());
}

// A card of half the rate: equal shares cost it 1.5 / 0.5 = 3, no share 1 / 0.5 = 2.
TEST(WaterFill, LeavesASlowCardItsOwnBytesOnly) {
    std::vector<Owner> owners = cards(4, 0);
    owners[3].bytesPerSecond = 0.5;
    const WaterFill fill = waterFill(owners);
    EXPECT_NEAR(fill.secondsPerByte, 2, 1e-12);
    EXPECT_NEAR(fill.shares[3], 0, 1e-12);
    EXPECT_NEAR(fill.shares[0], 1.0 / 3, 1e-12);
}

// By hand, one card of 0.8 of the rate: 3 (t - 1) / 2 + (0.8 t - 1) / 2 = 1, so t = 6 / 3.8.
TEST(WaterFill, LevelsCardsThatAllOwnSomething) {
    std::vector<Owner> owners = cards(4, 0);
    owners[3].bytesPerSecond = 0.8;
    const WaterFill fill = waterFill(owners);
    const double seconds = 6 / 3.8;
    EXPECT_NEAR(fill.secondsPerByte, seconds, 1e-12);
    EXPECT_NEAR(fill.shares[3], (0.8 * seconds - 1) / 2, 1e-12);
    EXPECT_NEAR(fill.shares[0], (seconds - 1) / 2, 1e-12);
}

TEST(WaterFill, OfOneOrTwoContributors) {
    EXPECT_THAT(waterFill(cards(1, 0)).shares, ElementsAre(1));
    EXPECT_EQ(waterFill(cards(1, 0)).secondsPerByte, 0);
    const std::vector<Owner> unequal = {{1, true}, {0.25, true}};
    EXPECT_THAT(waterFill(unequal).shares, ElementsAre(0.5, 0.5));
    EXPECT_DOUBLE_EQ(waterFill(unequal).secondsPerByte, 4);
    // Time enough for the helpers to own all of it.
    const std::vector<Owner> helped = {{1, true}, {0.25, true}, {1, false}, {1, false}};
    EXPECT_THAT(waterFill(helped).shares,
                Pointwise(DoubleNear(1e-12), std::vector<double>{0, 0, 0.5, 0.5}));
}

TEST(InUnits, AddUpAndStayNear) {
    const std::vector<double> thirds = {1.0 / 3, 1.0 / 3, 1.0 / 3, 0};
    EXPECT_THAT(inUnits(thirds, 1024), ElementsAre(342, 341, 341, 0));
    EXPECT_THAT(inUnits(waterFill(cards(8, 4)).shares, 88),
                ElementsAre(4, 4, 4, 4, 4, 4, 4, 4, 14, 14, 14, 14));
}

// By hand for 10, 10 and 5 Gbit/s: the slow card sends its S bytes in S / 5 whatever it owns, the
// others (1 + 1/2) S in 1.5 S / 10; equal parts would take the slow one 4/3 S / 5.
TEST(UnequalShares, LeaveNothingToACardOfHalfTheRate) {
    EXPECT_THAT(unequalShares(std::vector<double>{10, 10, 5}), ElementsAre(32, 32, 0));
}

// 4 cards, one of 0.8 (above): t = 6 / 3.8, so the quick ones own (t - 1) / 2 and 64 times that is
// 18.53, the slow one 8.42. Equal parts take 1.5 / 0.8 = 1.875 against 1.579.
TEST(UnequalShares, AreRoundedToSixtyFourths) {
    EXPECT_THAT(unequalShares(std::vector<double>{1, 1, 1, 0.8}), ElementsAre(19, 19, 18, 8));
}

TEST(UnequalShares, AreNotMadeWhereEqualOnesServe) {
    EXPECT_THAT(unequalShares(std::vector<double>{1, 1, 1}), ElementsAre());
    EXPECT_THAT(unequalShares(std::vector<double>{1, 1, 0.95}), ElementsAre());
    EXPECT_THAT(unequalShares(std::vector<double>{1, 0.1}), ElementsAre());   // two send alike
    EXPECT_THAT(unequalShares(std::vector<double>{1, 1, 0}), ElementsAre());  // not known
    EXPECT_THAT(unequalShares(std::vector<double>{}), ElementsAre());
}

}  // namespace
}  // namespace isthmus
