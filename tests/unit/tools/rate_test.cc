#include "tools/cluster/rate.hpp"

#include <gtest/gtest.h>

namespace isthmus::cluster {
namespace {

TEST(CardRates, AreRatesWithPlusesBetweenThem) {
    const auto two = CardRates::parse("4gbit+1gbit");
    ASSERT_TRUE(two.ok());
    EXPECT_EQ(two->cards.size(), 2U);
    EXPECT_EQ(two->bitsPerSecond(), 5'000'000'000U);
    EXPECT_EQ(two->text(), "4gbit+1gbit");
    EXPECT_EQ(CardRates::parse("1gbit+none")->bitsPerSecond(), 0U);
    EXPECT_TRUE(CardRates::parse("1gbit+cut")->cards[1].isCut);
    EXPECT_TRUE(CardRates::parse("1gbit+cut")->isCut());
    EXPECT_FALSE(two->isCut());
    EXPECT_EQ(CardRates::parse("1gbit+cut")->bitsPerSecond(), 1'000'000'000U);
    for (const char* wrong : {"", "+", "1gbit+", "+1gbit", "1gbit,1gbit", "1gbit++1gbit",
                              "none+none+none+none+none+none+none+none+none"})
        EXPECT_FALSE(CardRates::parse(wrong).ok()) << wrong;
}

TEST(Rate, ReadsDecimalUnitsAndNone) {
    EXPECT_EQ(Rate::parse("1gbit")->bitsPerSecond, 1'000'000'000U);
    EXPECT_EQ(Rate::parse("2.5gbit")->bitsPerSecond, 2'500'000'000U);
    EXPECT_EQ(Rate::parse("500mbit")->bitsPerSecond, 500'000'000U);
    EXPECT_EQ(Rate::parse("800kbit")->bitsPerSecond, 800'000U);
    EXPECT_FALSE(Rate::parse("none")->isLimited());
}

TEST(Rate, RefusesEverythingElse) {
    for (const char* wrong :
         {"", "1", "gbit", "-1gbit", "0gbit", "1e3gbit", "1 gbit", "1gbit ", "fast", "1Gbit",
          "nangbit", "infgbit", "500gbit", "1bit", "1.2.3gbit"}) {
        EXPECT_FALSE(Rate::parse(wrong).ok()) << wrong;
    }
}

TEST(Rate, PrintsWhatItReads) {
    for (const char* text : {"1gbit", "500mbit", "2500mbit", "800kbit", "none"}) {
        EXPECT_EQ(Rate::parse(text)->text(), text);
    }
}

TEST(Rate, BurstIsATimeOfTheLineWithinBounds) {
    EXPECT_EQ(Rate::parse("100mbit")->burstBytes(), 98'304U);
    EXPECT_EQ(Rate::parse("5gbit")->burstBytes(), 262'500U);  // 5e9 / 8 * 0.42e-3
    EXPECT_EQ(Rate::parse("20gbit")->burstBytes(), 524'288U);
}

}  // namespace
}  // namespace isthmus::cluster
