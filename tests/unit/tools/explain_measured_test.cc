#include "tools/cli/explain_measured.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

// Two nodes of two: an all-reduce of S sends at least S from a card, here at 95.65 % of 5 Gbit/s.
TEST(ExplainMeasured, PredictsTheSameCalls) {
    ExplainQuestion question;
    question.collective = Collective::kAllReduce;
    question.lineBitsPerSecond = 5e9;
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

}  // namespace
}  // namespace isthmus::cli
