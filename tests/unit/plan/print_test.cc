#include "comm/plan/print.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "comm/plan/builder.hpp"
#include "comm/plan/plan_digest.hpp"

namespace isthmus {
namespace {

Plan sample(Rank me) {
    PlanBuilder plan(Collective::kBroadcast, me, 2, 0, {}, {0, 1}, Mapping::kNone);
    plan.setAlgorithm("sample");
    if (me == 0) {
        plan.send(1, plan.input()({0}), 3);
        plan.copy(plan.output()({0}), plan.input()({0}));
        plan.signal(std::vector<Rank>{1});
    } else {
        plan.recv(0, plan.output()({0}), 3);
        plan.wait(std::vector<Rank>{0});
    }
    return *plan.finish();
}

TEST(Print, ShortensRuns) {
    const Slice slice = {{2, Buffer::kInput, 0}, {2, Buffer::kInput, 1}, {0, Buffer::kShared, 1}};
    EXPECT_EQ(textOf(slice), "input(0-1)@2 shared(1)@0");
}

TEST(Print, WritesOneLineForEachStep) {
    EXPECT_EQ(textOf(sample(0)),
              "broadcast sample rank 0 of 2 root 0 mapped none chunks 1 scratch 0 shared 0\n"
              "  0 send input(0)@0 to 1 channel 3\n"
              "  1 copy output(0)@0 <- input(0)@0 after 0\n"
              "  2 signal to 1 after 1\n");
}

TEST(Print, DrawsMessagesAndSignalsBetweenRanks) {
    const std::string dot = dotOf({sample(0), sample(1)});
    EXPECT_NE(dot.find("r0s0 -> r1s0 [style=bold]"), std::string::npos) << dot;
    EXPECT_NE(dot.find("r0s2 -> r1s1 [style=dotted]"), std::string::npos) << dot;
    EXPECT_NE(dot.find("r0s0 -> r0s1;"), std::string::npos) << dot;
}

TEST(Print, WritesJson) {
    const auto json = nlohmann::json::parse(jsonOf(sample(0)));
    EXPECT_EQ(json["algorithm"], "sample");
    EXPECT_EQ(json["steps"].size(), 3U);
    EXPECT_EQ(json["steps"][0]["sources"][0][0], nlohmann::json::array({0, "input", 0}));
    EXPECT_EQ(json["steps"][1]["after"], nlohmann::json::array({0}));
}

TEST(PlanDigest, TellsPlansApart) {
    const Plan plan = sample(0);
    EXPECT_EQ(digestOf(plan), digestOf(Plan(plan)));
    Plan other = plan;
    other.steps[1].after.clear();
    EXPECT_NE(digestOf(other), digestOf(plan));
    other = plan;
    other.steps[0].sources[0][0].chunk = 1;
    EXPECT_NE(digestOf(other), digestOf(plan));
    EXPECT_NE(digestOf(sample(1)), digestOf(plan));
}

TEST(PlanDigest, OfAgreementIsTheSameOnAllRanks) {
    EXPECT_EQ(digestOfAgreement(sample(0)), digestOfAgreement(sample(1)));
    Plan other = sample(1);
    other.root = 1;
    EXPECT_NE(digestOfAgreement(other), digestOfAgreement(sample(0)));
}

}  // namespace
}  // namespace isthmus
