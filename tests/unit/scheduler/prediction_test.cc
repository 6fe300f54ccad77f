#include "scheduler/prediction/prediction.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "scheduler/placement/placement.hpp"
#include "scheduler/placement/shape.hpp"
#include "scheduler/prediction/model_search.hpp"
#include "tests/unit/scheduler/shapes.hpp"

namespace isthmus::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Job jobOf(std::int64_t globalBatch, std::int64_t microBatch = 1) {
    Job job;
    job.globalBatch = globalBatch;
    job.microBatch = microBatch;
    return job;
}

ModelQuestion questionOf(const std::string& nodes, const Model& model, const Job& job) {
    ModelQuestion question;
    question.cluster = *clusterOf(nodes, 1e11);
    question.model = model;
    question.job = job;
    question.wanted = Degrees(0);
    return question;
}

/// The ranks of each group of `span` in `stage`, told from coordinates alone.
std::map<std::vector<int>, std::vector<int>> byCoordinates(const AxisVolumes& volumes, Span span,
                                                           int stage) {
    const Shape shape(volumes.degrees);
    std::map<std::vector<int>, std::vector<int>> groups;
    for (int rank = 0; rank < shape.ranks(); ++rank) {
        const int tensor = shape.coordinate(rank, Axis::kTensor);
        const int context = shape.coordinate(rank, Axis::kContext);
        const int expert = shape.coordinate(rank, Axis::kExpert);
        const int data = shape.coordinate(rank, Axis::kData);
        const int pipeline = data * shape.degree(Axis::kExpert) + expert;
        if (shape.coordinate(rank, Axis::kPipe) != stage) continue;
        const auto shard = static_cast<int>(volumes.shard);
        const std::map<Span, std::vector<int>> kept = {
            {Span::kTensor, {context, expert, data}},
            {Span::kContext, {tensor, expert, data}},
            {Span::kExpert, {tensor, context, data}},
            {Span::kData, {tensor}},
            {Span::kShard, {tensor, pipeline / shard}},
            {Span::kReplicate, {tensor, context, pipeline % shard}},
            {Span::kExpertData, {tensor, expert}}};
        groups[kept.at(span)].push_back(rank);
    }
    return groups;
}

// What a span is says Megatron-LM, parallel_state.py: ranks whose other coordinates are the same.
TEST(Groups, AreThoseWhoseOtherCoordinatesAreTheSame) {
    const Degrees degrees = ways(2, 2, 3, 2, 2);
    const AxisVolumes volumes{degrees, 2, std::vector<StageVolumes>(2)};
    for (const Span span : kSpans) {
        if (span == Span::kTied) continue;
        for (const int stage : {0, 1}) {
            std::vector<std::vector<int>> expected;
            for (const auto& [key, ranks] : byCoordinates(volumes, span, stage)) {
                expected.push_back(ranks);
                EXPECT_EQ(static_cast<std::int64_t>(ranks.size()), volumes.ranksOf(span));
            }
            EXPECT_THAT(groupsOf(volumes, span, stage),
                        testing::UnorderedElementsAreArray(expected))
                << nameOf(span);
        }
    }
}

/// What leaves each node when every rank sends its part round a ring in the order of the nodes, or
/// to every other; all bytes divide.
std::vector<std::int64_t> sentOneByOne(const AxisVolumes& volumes,
                                       const std::vector<int>& nodeOfRank, int nodes) {
    std::vector<std::int64_t> egress(static_cast<std::size_t>(nodes));
    const auto nodeOf = [&](int rank) { return nodeOfRank[static_cast<std::size_t>(rank)]; };
    for (int stage = 0; stage < static_cast<int>(volumes.stages.size()); ++stage) {
        for (const Traffic& call : volumes.stages[static_cast<std::size_t>(stage)].traffic) {
            for (auto [key, ranks] : byCoordinates(volumes, call.span, stage)) {
                std::stable_sort(ranks.begin(), ranks.end(),
                                 [&](int one, int other) { return nodeOf(one) < nodeOf(other); });
                const auto members = static_cast<std::int64_t>(ranks.size());
                EXPECT_EQ(call.bytes % members, 0);
                const std::int64_t piece = call.bytes / members * call.calls;
                const std::int64_t passes = call.kind == Collective::kAllReduce ? 2 : 1;
                for (std::size_t at = 0; at < ranks.size(); ++at) {
                    std::int64_t& out = egress[static_cast<std::size_t>(nodeOf(ranks[at]))];
                    if (call.kind == Collective::kAllToAll) {
                        for (const int to : ranks)
                            out += nodeOf(to) != nodeOf(ranks[at]) ? piece : 0;
                    } else if (nodeOf(ranks[at]) != nodeOf(ranks[(at + 1) % ranks.size()])) {
                        out += passes * (members - 1) * piece;
                    }
                }
            }
        }
    }
    return egress;
}

// Experts and contexts: a dense layer's copies are spread over three axes.
TEST(NodeBytes, CountGroupsOverSeveralAxesToTheByte) {
    TransformerShape shape = transformer(4, 64, 8, 0, 64);
    shape.experts = 4;
    const Model model = mixtureModel(shape);
    std::mt19937 random(7);
    for (const int zero : {0, 1, 3}) {
        Job job = jobOf(24);
        job.zeroStage = zero;
        const Degrees degrees = ways(2, 1, 3, 2, 2);
        const Result<AxisVolumes> volumes =
            volumesOf(model, job, degrees, evenCut(1, 1, static_cast<int>(model.layers.size())));
        ASSERT_TRUE(volumes.ok()) << volumes.status().what();
        AxisVolumes divided = *volumes;
        for (Traffic& call : divided.stages[0].traffic) call.bytes = (call.bytes + 23) / 24 * 24;
        std::vector<int> nodes;
        for (int rank = 0; rank < 24; ++rank) nodes.push_back(rank < 11 ? 0 : rank < 19 ? 1 : 2);
        for (int trial = 0; trial < 20; ++trial) {
            std::shuffle(nodes.begin(), nodes.end(), random);
            std::vector<std::int64_t> egress;
            for (const NodeBytes& node : bytesOfNodes(divided, nodes, 3)) {
                egress.push_back(node.all().egress);
            }
            EXPECT_EQ(egress, sentOneByOne(divided, nodes, 3));
        }
    }
}

TEST(NodeBytes, WhatLeavesEnters) {
    const Model model = gptModel(transformer(6, 96, 6, 1000, 33));
    const Job job = jobOf(12);
    const Degrees degrees = ways(2, 3, 2);
    const Result<AxisVolumes> volumes = volumesOf(model, job, degrees, evenCut(3, 1, 8));
    ASSERT_TRUE(volumes.ok());
    std::vector<int> nodes = {0, 1, 2, 2, 0, 1, 1, 1, 0, 0, 2, 2};
    NodeTraffic sum;
    NodeBytes tied;
    for (const NodeBytes& node : bytesOfNodes(*volumes, nodes, 3)) {
        sum.egress += node.all().egress;
        sum.ingress += node.all().ingress;
        tied[Span::kTied].egress += node[Span::kTied].egress;
    }
    EXPECT_EQ(sum.egress, sum.ingress);
    // Embedding and head share 1000 x 96 parameters, half on each tensor rank; float32 gradients
    // of ranks 0 and 8, 1 and 9, 2 and 10, 3 and 11: the second pair alone is on two nodes apart
    // from 0 and 8's node, 2 and 3 are with theirs. A ring of two sends the operand.
    EXPECT_EQ(tied[Span::kTied].egress, 2 * 1000 * 96 / 2 * 4);
}

TEST(ModelSearch, StepTimeIsTheLeastOfAllDegrees) {
    const Model model = gptModel(transformer(8, 512, 8, 4096, 256));
    ModelQuestion question = questionOf("2x4", model, jobOf(16));
    question.job.objective = Objective::kStepTime;
    double least = 1e9;
    int tried = 0;
    for (int tensor = 1; tensor <= 8; tensor *= 2) {
        for (int pipe = 1; tensor * pipe <= 8; pipe *= 2) {
            for (int context = 1; tensor * pipe * context <= 8; context *= 2) {
                ModelQuestion fixed = question;
                fixed.wanted = ways(tensor, pipe, 8 / tensor / pipe / context, context);
                const Result<ModelAnswer> answer = searchModel(fixed, {});
                if (!answer.ok()) continue;
                ++tried;
                least = std::min(least, answer->predictions[0].step.seconds);
            }
        }
    }
    EXPECT_GT(tried, 10);
    const Result<ModelAnswer> answer = searchModel(question, {});
    ASSERT_TRUE(answer.ok()) << answer.status().what();
    EXPECT_DOUBLE_EQ(answer->predictions[0].step.seconds, least);
}

TEST(ModelSearch, MemoryIsThatOfTheEmptiestFullestStage) {
    const Model model = gptModel(transformer(8, 512, 8, 4096, 256));
    ModelQuestion question = questionOf("2x4", model, jobOf(16));
    question.job.objective = Objective::kMemory;
    question.keep = 3;
    const Result<ModelAnswer> answer = searchModel(question, {});
    ASSERT_TRUE(answer.ok()) << answer.status().what();
    ASSERT_EQ(answer->predictions.size(), 3U);
    std::vector<std::int64_t> most;
    for (const Prediction& each : answer->predictions) {
        std::int64_t fullest = 0;
        for (const auto& stage : each.stages) fullest = std::max(fullest, stage.memory.total());
        most.push_back(fullest);
    }
    EXPECT_LE(most[0], most[1]);
    EXPECT_LE(most[1], most[2]);
    EXPECT_EQ(answer->search.best[0].degrees[Axis::kData], 1);  // a copy costs, nothing shares it
}

// Megatron-LM#1757, exo#957: layers go by measured speed, whatever memory says.
TEST(ModelSearch, MixedDevicesGetLayersBySpeed) {
    const Model model = gptModel(transformer(12, 256, 4, 0, 128));
    ModelQuestion question = questionOf("2x2", model, jobOf(32));
    for (Device& device : question.cluster.nodes[0].devices) device = {device.index, 3e12, 1 << 30};
    for (Device& device : question.cluster.nodes[1].devices) device = {device.index, 1e12, 2 << 30};
    question.wanted = ways(2, 2, 1);
    const Result<ModelAnswer> answer = searchModel(question, {});
    ASSERT_TRUE(answer.ok()) << answer.status().what();
    const Prediction& prediction = answer->predictions[0];
    std::map<int, std::size_t> layers;
    for (int stage = 0; stage < 2; ++stage) {
        layers[answer->search.best[0].nodeOfRank[static_cast<std::size_t>(stage) * 2]] =
            prediction.stages[static_cast<std::size_t>(stage)].layers.size();
    }
    EXPECT_EQ(layers[0], 9U);
    EXPECT_EQ(layers[1], 3U);
    const auto& times = prediction.step.times;
    // Its memory is as fast: what the layers touch takes as long.
    EXPECT_NEAR(times.forward[0], times.forward[1], 0.15 * times.forward[0]);
}

TEST(ModelSearch, WhatDoesNotFitNamesTheLargestPartAndAChange) {
    const Model model = gptModel(transformer(8, 512, 8, 4096, 256));
    ModelQuestion question = questionOf("2x2", model, jobOf(16));
    for (Node& node : question.cluster.nodes) {
        for (Device& device : node.devices) device.memoryBytes = 64 << 20;
    }
    const Result<ModelAnswer> answer = searchModel(question, {});
    ASSERT_FALSE(answer.ok());
    EXPECT_EQ(answer.status().code(), Status::Code::kUnsupported);
    EXPECT_THAT(answer.status().what(), HasSubstr("lack least"));
    EXPECT_THAT(answer.status().what(), HasSubstr("the largest part is"));
    question.wanted = ways(1, 1, 4);
    EXPECT_THAT(searchModel(question, {}).status().what(), HasSubstr("the largest part is"));
}

TEST(Prediction, SurvivesItsJson) {
    const Model model = gptModel(transformer(6, 96, 6, 1000, 33));
    ModelQuestion question = questionOf("3x2", model, jobOf(12));
    question.wanted = ways(2, 3, 1);
    const Result<ModelAnswer> answer = searchModel(question, {});
    ASSERT_TRUE(answer.ok()) << answer.status().what();
    Placement placement =
        placementOf(question.cluster, answer->search.best[0], PerAxis<bool>(true));
    placement.predicted = answer->predictions[0];
    EXPECT_THAT(placement.predicted->megatronLayout, HasSubstr("|"));
    const std::string text = toJson(placement, {}, nullptr);
    const Result<Placement> read = placementFromJson(text);
    ASSERT_TRUE(read.ok()) << read.status().what();
    EXPECT_EQ(toJson(*read, {}, nullptr), text);
}

}  // namespace
}  // namespace isthmus::scheduler
