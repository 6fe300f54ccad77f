// A step of training on emulated nodes sends, out of every card and into it, what the scheduler
// predicts: equal to the byte, by the counters of the library; and trains as one process does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cluster/program.hpp"

namespace isthmus::test {
namespace {

struct Job {
    const char* name;
    const char* nodes;
    const char* order;
    std::vector<std::string> split;  ///< tensor, data, pipe, ZeRO, ranks of a shard group
    const char* algorithm;
    long long known;  ///< bytes out of node 0 by hand; 0: not worked out
};

// A layer has 6,144 weights, the model 4 of them: 98,304 bytes. A boundary of all 24 samples:
// 3,072.
const std::vector<Job> kJobs = {
    {"Data", "2x2", "block", {"1", "4", "1", "0", "0"}, "two_level_ring", 98'304},
    {"DataFlat", "2x2", "block", {"1", "4", "1", "0", "0"}, "ring", 147'456},
    {"DataUnequal", "2+1", "block", {"1", "3", "1", "0", "0"}, "two_level_ring", 98'304},
    {"Zero1", "2x2", "block", {"1", "4", "1", "1", "0"}, "two_level_ring", 98'304},
    {"Zero2Flat", "3x2", "block", {"1", "6", "1", "2", "0"}, "ring", 163'840},
    // Three micro-batches a rank, two gathers and a sum each: 9 times half of the model.
    {"Zero3", "2x2", "block", {"1", "4", "1", "3", "0"}, "two_level_ring", 442'368},
    {"Zero3Flat", "2x2", "block", {"1", "4", "1", "3", "0"}, "ring", 663'552},
    {"ShardsInside", "2x2", "block", {"1", "4", "1", "3", "2"}, "two_level_ring", 98'304},
    {"TensorInside", "2x2", "block", {"2", "2", "1", "0", "0"}, "two_level_ring", 98'304},
    // Two groups; forward and backward of four layers; 12 micro-batches of 256 bytes for both
    // replicas.
    {"TensorAcross", "2x2", "round-robin", {"2", "2", "1", "0", "0"}, "ring", 24'576},
    {"Stages", "2x2", "block", {"1", "2", "2", "0", "0"}, "two_level_ring", 3'072},
    // Both ranks of a tensor group send the boundary, both ways in the middle.
    {"TensorInStages", "4x2", "block", {"2", "1", "4", "0", "0"}, "ring", 6'144},
    {"AllThree", "2x4", "block", {"2", "2", "2", "0", "0"}, "two_level_ring", 6'144},
};

class TrainingBytes : public testing::TestWithParam<Job> {};

TEST_P(TrainingBytes, AreThosePredicted) {
    const Job& job = GetParam();
    std::vector<std::string> words = {"run",     "--no-prefix", "--nodes", job.nodes,
                                      "--order", job.order,     "--",      TRAINING_PROGRAM};
    words.insert(words.end(), job.split.begin(), job.split.end());
    words.push_back(job.algorithm);
    const Ended ended = isthmus(words);
    if (ended.exitCode == 2) GTEST_SKIP() << "no emulated nodes on this machine: " << ended.error;
    EXPECT_EQ(ended.exitCode, 0) << ended.output << ended.error;
    if (job.known == 0) return;
    EXPECT_EQ(linesOf(ended.output).front().substr(0, 2 + std::to_string(job.known).size()),
              "0 " + std::to_string(job.known));
}

INSTANTIATE_TEST_SUITE_P(Jobs, TrainingBytes, testing::ValuesIn(kJobs),
                         [](const auto& job) { return job.param.name; });

}  // namespace
}  // namespace isthmus::test
