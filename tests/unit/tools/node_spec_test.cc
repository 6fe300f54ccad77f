#include "tools/cli/node_spec.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace isthmus::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Order = NodeSpec::Order;

TEST(NodeSpec, ReadsEvenUnequalAndMixedNodes) {
    const auto even = NodeSpec::parse("2x4");
    ASSERT_TRUE(even.ok());
    EXPECT_EQ(even->nodes(), 2);
    EXPECT_EQ(even->ranks(), 8);

    const auto unequal = NodeSpec::parse("3+2+1");
    ASSERT_TRUE(unequal.ok());
    EXPECT_EQ(unequal->nodes(), 3);
    EXPECT_EQ(unequal->ranksOf(0), 3);
    EXPECT_EQ(unequal->ranksOf(2), 1);

    const auto mixed = NodeSpec::parse("2x4+1");
    ASSERT_TRUE(mixed.ok());
    EXPECT_EQ(mixed->text(), "4+4+1");
    EXPECT_EQ(mixed->ranks(), 9);
}

TEST(NodeSpec, PrintsTheShortestForm) {
    EXPECT_EQ(NodeSpec::parse("2+2")->text(), "2x2");
    EXPECT_EQ(NodeSpec::parse("4")->text(), "1x4");
    EXPECT_EQ(NodeSpec::parse("1+2")->text(), "1+2");
}

TEST(NodeSpec, ReadsRacks) {
    const auto racks = NodeSpec::parse("2x4/3+1/1x2");
    ASSERT_TRUE(racks.ok());
    EXPECT_EQ(racks->nodes(), 5);
    EXPECT_EQ(racks->ranks(), 14);
    EXPECT_THAT(racks->racks(), ElementsAre(0, 0, 1, 1, 2));
    EXPECT_EQ(racks->text(), "2x4/3+1/1x2");
    EXPECT_EQ(NodeSpec::parse("2+2/4")->text(), "2x2/1x4");
    EXPECT_TRUE(NodeSpec::parse("2x4")->racks().empty());
}

TEST(NodeSpec, DealsRanksInBlocksOrRoundRobin) {
    const auto spec = NodeSpec::parse("3+2+1");
    ASSERT_TRUE(spec.ok());
    EXPECT_THAT(spec->nodeOfRank(Order::kBlock), ElementsAre(0, 0, 0, 1, 1, 2));
    EXPECT_THAT(spec->nodeOfRank(Order::kRoundRobin), ElementsAre(0, 1, 2, 0, 1, 0));
}

TEST(NodeSpec, RefusesEverythingElseAndNamesIt) {
    for (const char* wrong : {"",
                              "x",
                              "2x",
                              "x2",
                              "0x2",
                              "2x0",
                              "+",
                              "2+",
                              "+2",
                              "2x2x2",
                              "-1",
                              "2 x 2",
                              "a",
                              "1.5",
                              "5000",
                              "64x65",
                              "99999999999999999999",
                              "2X2",
                              "2x2/",
                              "/2x2",
                              "2x2//2x2",
                              "2048x1/2049"}) {
        const auto spec = NodeSpec::parse(wrong);
        ASSERT_FALSE(spec.ok()) << wrong;
        EXPECT_EQ(spec.status().code(), Status::Code::kInvalidArgument);
        EXPECT_THAT(spec.status().what(), HasSubstr("\"" + std::string(wrong) + "\""));
    }
}

TEST(NodeSpec, ReadsTheRankOrder) {
    EXPECT_EQ(*NodeSpec::parseOrder("block"), Order::kBlock);
    EXPECT_EQ(*NodeSpec::parseOrder("round-robin"), Order::kRoundRobin);
    EXPECT_FALSE(NodeSpec::parseOrder("random").ok());
}

}  // namespace
}  // namespace isthmus::cli
