#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/cli/explain_report.hpp"

namespace isthmus::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

/// 64 MiB over two racks of two nodes of two ranks.
ExplainQuestion racked(Collective collective) {
    ExplainQuestion question;
    question.collective = collective;
    question.bytes = 64 << 20;
    question.layout = Layout::of({0, 0, 1, 1, 2, 2, 3, 3});
    question.layout.racks = {{0, 0, 1, 1}};
    question.layoutText = "2x2/2x2";
    question.lineBitsPerSecond = {10e9};
    return question;
}

const ExplainCandidate& candidate(const ExplainAnswer& answer, std::string_view name) {
    const auto found = std::find_if(answer.candidates.begin(), answer.candidates.end(),
                                    [&](const auto& each) { return each.algorithm.name == name; });
    EXPECT_NE(found, answer.candidates.end()) << name;
    return *found;
}

// Two racks: an all-reduce must let the operand over each link; two levels send it twice.
TEST(ExplainRacks, ShowsWhatCrossesTheirLinks) {
    ExplainQuestion question = racked(Collective::kAllReduce);
    question.rackBitsPerSecond = 5e9;
    const Result<ExplainAnswer> answer = answerOf(question);
    ASSERT_TRUE(answer.ok()) << answer.status().what();
    const std::uint64_t operand = 64 << 20;
    EXPECT_EQ(answer->rackBound.busiest, operand);
    EXPECT_EQ(answer->bound.busiest, operand * 3 / 2);
    EXPECT_EQ(answer->chosen, "three_level_exchange");
    EXPECT_LT(candidate(*answer, "three_level_exchange").seconds,
              candidate(*answer, "two_level_exchange").seconds);
    EXPECT_EQ(candidate(*answer, "three_level_exchange").busiestRack, operand);
    EXPECT_EQ(candidate(*answer, "two_level_exchange").busiestRack, 2 * operand);
    EXPECT_DOUBLE_EQ(answer->boundSeconds, static_cast<double>(operand) / goodputOf(5e9));
    const std::string text = answerText(question, *answer);
    EXPECT_THAT(text, HasSubstr("bytes/rack"));
    EXPECT_THAT(text, HasSubstr("100663296 bytes per card, 67108864 per rack"));
    EXPECT_THAT(text, HasSubstr("goodput of a rack's link: 597.8 MB/s"));
    EXPECT_THAT(answerJson(question, *answer), HasSubstr("\"rack_bytes\": 67108864"));
}

TEST(ExplainRacks, TakesTheLinkOfARackForThatOfACard) {
    const ExplainQuestion question = racked(Collective::kAllGather);
    const Result<ExplainAnswer> answer = answerOf(question);
    ASSERT_TRUE(answer.ok()) << answer.status().what();
    EXPECT_DOUBLE_EQ(answer->model.rackBytesPerSecond, goodputOf(10e9));
    EXPECT_THAT(answerText(question, *answer), HasSubstr("assumed: that of a card"));
}

TEST(ExplainRacks, SaysNothingOfRacksWhereThereAreNone) {
    ExplainQuestion question = racked(Collective::kAllReduce);
    question.layout.racks.clear();
    const Result<ExplainAnswer> answer = answerOf(question);
    ASSERT_TRUE(answer.ok());
    EXPECT_THAT(answerText(question, *answer), Not(HasSubstr("rack")));
    EXPECT_THAT(answerJson(question, *answer), Not(HasSubstr("rack")));
}

// Two nodes with data and two that only add: the operand over each card, not 1.5 times it.
TEST(ExplainSumming, ShowsOneAlgorithmOrTwo) {
    ExplainQuestion question = racked(Collective::kAllReduce);
    question.layout.racks.clear();
    question.layout.summing = {4, 5, 6, 7};
    const Result<ExplainAnswer> answer = answerOf(question);
    ASSERT_TRUE(answer.ok()) << answer.status().what();
    EXPECT_EQ(answer->candidates.size(), 2u);
    EXPECT_EQ(answer->chosen, "two_level_summing");
    EXPECT_EQ(candidate(*answer, "two_level_summing").busiest, std::uint64_t{64} << 20);
    EXPECT_EQ(answer->bound.busiest, std::uint64_t{64} << 20);
}

}  // namespace
}  // namespace isthmus::cli
