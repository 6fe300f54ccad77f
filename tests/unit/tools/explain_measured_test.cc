#include "tools/cli/explain_measured.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string_view>

#include <string>
#include <utility>

namespace isthmus::cli {
namespace {

using testing::HasSubstr;

// As bench writes it, but for what explain does not read.
constexpr const char* kFile = R"({
  "args": ["isthmus", "bench", "all_reduce", "--malloc", "--algorithm", "two_level_ring"],
  "config": {"devices": [{"device_info": "node 0"}, {"device_info": "node 0"},
                         {"device_info": "node 1"}, {"device_info": "node 1"}]},
  "results": [
    {"size": 1048576, "type": "float", "root": "    -1", "experiment_name": "all_reduce",
     "out_of_place": {"time": 2000.0, "wire_bytes": 1048576}},
    {"size": 67108864, "type": "bfloat16", "root": "    -1", "experiment_name": "all_reduce",
     "out_of_place": {"time": 117000.0}}]})";

TEST(ExplainMeasured, ReadsWhatBenchWrites) {
    const Result<Measurement> measurement = measurementOf(kFile);
    ASSERT_TRUE(measurement.ok()) << measurement.status().what();
    EXPECT_EQ(measurement->collective, "all_reduce");
    EXPECT_EQ(measurement->nodeOfRank, (std::vector<int>{0, 0, 1, 1}));
    EXPECT_FALSE(measurement->isMapped);
    EXPECT_EQ(measurement->algorithm, "two_level_ring");
    ASSERT_EQ(measurement->rows.size(), 2U);
    EXPECT_EQ(measurement->rows[0].bytes, 1048576U);
    EXPECT_DOUBLE_EQ(measurement->rows[0].seconds, 0.002);
    EXPECT_EQ(measurement->rows[0].wireBytes, 1048576U);
    EXPECT_FALSE(measurement->rows[1].wireBytes);
}

TEST(ExplainMeasured, SaysWhatIsNotAsBenchWritesIt) {
    for (const char* const text : {"", "[1]", "{}", R"({"args": []})",
                                   R"({"args": [], "config": {"devices": []}, "results": []})"}) {
        EXPECT_THAT(measurementOf(text).status().what(), HasSubstr("bench --format json")) << text;
    }
}

std::string withInstead(std::string_view was, std::string_view is) {
    std::string text = kFile;
    const std::size_t at = text.find(was);
    EXPECT_NE(at, text.npos) << was;
    return text.replace(at, was.size(), is);
}

// Each would else be some other number, or a row of another collective among these.
TEST(ExplainMeasured, RefusesFieldsThatBenchNeverWrites) {
    const std::pair<const char*, const char*> wrong[] = {
        {"\"size\": 1048576", "\"size\": -8"},
        {"\"size\": 1048576", "\"size\": 8.5"},
        {"\"size\": 1048576", "\"size\": 1e30"},
        {"\"size\": 1048576", "\"size\": 18446744073709551615"},
        {"\"wire_bytes\": 1048576", "\"wire_bytes\": -1"},
        {"\"root\": \"    -1\"", "\"root\": \"    -5\""},
        {"\"root\": \"    -1\"", "\"root\": \"    1x\""},
        {"\"root\": \"    -1\"", "\"root\": \"     4\""},
        {"\"root\": \"    -1\"", "\"root\": \"99999999999999999999\""},
        {"\"time\": 2000.0", "\"time\": 0"},
        {"\"time\": 2000.0", "\"time\": -3.5"},
        {"\"time\": 2000.0", "\"time\": 1e308"},
        {"\"node 0\"", "\"node\""},
        {"\"node 0\"", "\"node -3\""},
        {"\"node 0\"", "\"node 1z\""},
        {"\"experiment_name\": \"all_reduce\"", "\"experiment_name\": \"all_gather\""},
    };
    for (const auto& [was, is] : wrong)
        EXPECT_THAT(measurementOf(withInstead(was, is)).status().what(), HasSubstr(" is not "))
            << is;
}

TEST(ExplainMeasured, RefusesMoreRanksThanAJobHas) {
    std::string devices;
    for (int rank = 0; rank < 4096; ++rank) devices += R"({"device_info": "node 0"}, )";
    const std::string text =
        withInstead(R"({"device_info": "node 0"})", devices + R"({"device_info": "node 0"})");
    EXPECT_THAT(measurementOf(text).status().what(), HasSubstr("devices \"4100\" is not"));
}

// Two nodes of two: an all-reduce of S sends at least S from a card, here at 95.65 % of 5 Gbit/s.
TEST(ExplainMeasured, PredictsTheSameCalls) {
    ExplainQuestion question;
    question.collective = Collective::kAllReduce;
    question.lineBitsPerSecond = {5e9};
    const auto all = compare(*measurementOf(kFile), question);
    ASSERT_TRUE(all.ok()) << all.status().what();
    ASSERT_EQ(all->size(), 2U);
    const Comparison& large = all->at(1);
    EXPECT_EQ(large.algorithm, "two_level_ring");
    EXPECT_EQ(large.predictedWireBytes, 67108864U);
    const double bound = 67108864 / (5e9 / 8 * 0.9565);
    EXPECT_GT(large.predictedSeconds, bound);
    EXPECT_LT(large.predictedSeconds, 1.1 * bound);
    EXPECT_DOUBLE_EQ(large.ratio(), 0.117 / large.predictedSeconds);
    EXPECT_THAT(comparisonText(*measurementOf(kFile), *all), HasSubstr("all_reduce over 2+2"));
}

TEST(Explain, KnowsCardsThatDiffer) {
    ExplainQuestion question;
    question.collective = Collective::kAllReduce;
    question.bytes = 16 << 20;
    question.layout = Layout::of({0, 1, 2});
    question.lineBitsPerSecond = {2e9, 2e9, 1e9};
    const auto answer = answerOf(question);
    ASSERT_TRUE(answer.ok()) << answer.status().what();
    EXPECT_EQ(answer->chosen, "two_level_owners");
    // The slow card sends the operand once at least, at 95.65 % of its line.
    EXPECT_NEAR(answer->boundSeconds, (16 << 20) / (1e9 / 8 * 0.9565), 1e-6);
    std::map<std::string_view, double> seconds;
    for (const ExplainCandidate& one : answer->candidates)
        seconds[one.algorithm.name] = one.seconds;
    // The slow card would carry 4/3 of the operand in an exchange of equal parts.
    EXPECT_LT(seconds["two_level_owners"], 0.9 * seconds["two_level_exchange"]);
    EXPECT_GT(seconds["two_level_exchange"], 4.0 / 3 * answer->boundSeconds);
    question.lineBitsPerSecond = {2e9, 1e9};
    EXPECT_THAT(answerOf(question).status().what(), HasSubstr("2 rates of cards for 3 nodes"));
}

}  // namespace
}  // namespace isthmus::cli
