#include "tools/cli/tune_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace isthmus::cli {
namespace {

using testing::HasSubstr;

TunedPoint point(Collective collective, std::uint64_t bytes, double ring, double doubling) {
    TunedPoint made{collective, bytes, "ring", {{"ring", ring}, {"doubling", doubling}}};
    if (doubling < ring) std::swap(made.seconds[0], made.seconds[1]);
    return made;
}

// Doubling is better at 8 and 64 bytes, ring at 512; at 4096 doubling is better by too little for a
// rule.
std::vector<TunedPoint> measured() {
    return {point(Collective::kAllReduce, 8, 3, 1), point(Collective::kAllReduce, 64, 3, 1),
            point(Collective::kAllReduce, 512, 1, 2), point(Collective::kAllReduce, 4096, 1.04, 1)};
}

TEST(TuneReport, MakesARuleOfEachRunOfSizesWhereTheChoiceIsSlow) {
    EXPECT_EQ(textOf(rulesFrom(measured(), {2, 2})), "all_reduce@2+2:0-64=doubling");
}

// The job had a rule for doubling: the table speaks of that, the new file of what went before.
TEST(TuneReport, ChecksTheRulesOfTheJobAndKeepsThem) {
    auto points = measured();
    for (TunedPoint& point : points) point.chosen = "doubling";
    EXPECT_EQ(tuneFoot(points),
              "3 of 4 choices are within 15 % of the best; worst: all_reduce of 512 bytes, 2.00\n");
    EXPECT_EQ(textOf(rulesFrom(points, {2, 2})), "all_reduce@2+2:0-64=doubling");
}

TEST(TuneReport, LetsTheLargestSizeStandForAllAboveIt) {
    auto points = measured();
    points.push_back(point(Collective::kAllReduce, 32768, 3, 1));
    points.push_back(point(Collective::kReduce, 8, 3, 1));
    points.push_back(point(Collective::kBroadcast, 8, 1, 3));
    EXPECT_EQ(textOf(rulesFrom(points, {1})),
              "all_reduce@1:0-64=doubling,all_reduce@1:4097-=doubling,reduce@1=doubling");
}

TEST(TuneReport, CountsTheGoodChoices) {
    EXPECT_EQ(tuneFoot(measured()),
              "2 of 4 choices are within 15 % of the best; worst: all_reduce of 8 bytes, 3.00\n");
    EXPECT_EQ(tuneFoot({}), "");
    EXPECT_THAT(tuneRow(measured().front()), HasSubstr("doubling"));
}

TEST(TuneReport, WritesWhatTheSelectorReads) {
    char folder[] = "/tmp/isthmus-tune-XXXXXX";
    ASSERT_NE(::mkdtemp(folder), nullptr);
    // Names of the catalogue, since reading checks them.
    const TunedPoint slow{Collective::kAllGather, 8, "ring", {{"bruck", 1e-6}, {"ring", 2e-6}}};
    const std::string path = std::string(folder) + "/tuned.json";
    std::ofstream(path) << tuneDocument({slow}, {2, 2}, "isthmus tune all_gather");
    const auto rules = readAlgorithmRules(path);
    std::filesystem::remove_all(folder);
    ASSERT_TRUE(rules.ok()) << rules.status().what();
    EXPECT_EQ(textOf(*rules), "all_gather@2+2=bruck");
}

}  // namespace
}  // namespace isthmus::cli
