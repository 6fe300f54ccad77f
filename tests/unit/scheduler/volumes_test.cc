#include "scheduler/model/volumes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/model/local_parameters.hpp"
#include "tests/unit/scheduler/shapes.hpp"

namespace isthmus::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

AxisVolumes counted(const Model& model, const Job& job, const Degrees& degrees) {
    const StageCut cut =
        evenCut(degrees[Axis::kPipe], job.virtualStages, static_cast<int>(model.layers.size()));
    const Result<AxisVolumes> volumes = volumesOf(model, job, degrees, cut);
    EXPECT_TRUE(volumes.ok()) << volumes.status().what();
    return volumes.ok() ? *volumes : AxisVolumes{degrees, 1, std::vector<StageVolumes>(99)};
}

/// Layers only, so that every number below is a layer's.
Model bare(int layers = 4, std::int64_t hidden = 64, std::int64_t sequence = 32) {
    return gptModel(transformer(layers, hidden, 4, 0, sequence));
}

constexpr std::int64_t kA = 2 * 32 * 64 * 2;  // b s h 2 bytes: b 2, s 32, h 64

Job smallJob() {
    Job job;
    job.globalBatch = 16;
    job.microBatch = 2;
    return job;
}

TEST(Volumes, TensorReducesFourTimesALayer) {
    Job job = smallJob();
    const int layers = 4;
    const std::int64_t micro = 8;
    AxisVolumes volumes = counted(bare(), job, ways(4, 1, 1));
    // 8 (t - 1) / t A: four all-reduces.
    EXPECT_EQ(volumes.sentBytes(0, Span::kTensor), 8 * 3 * kA / 4 * layers * micro);
    job.recompute = Recompute::kFull;  // and the two forward ones again
    volumes = counted(bare(), job, ways(4, 1, 1));
    EXPECT_EQ(volumes.sentBytes(0, Span::kTensor), 12 * 3 * kA / 4 * layers * micro);
    EXPECT_THAT(volumes.stages[0].traffic,
                ElementsAre(Traffic{Span::kTensor, Collective::kAllReduce, kA, 6 * 4 * 8}));
}

TEST(Volumes, SequenceParallelGathersTwiceMore) {
    Job job = smallJob();
    job.sequenceParallel = true;
    const AxisVolumes volumes = counted(bare(), job, ways(4, 1, 1));
    // The norms' and biases' gradients: 6 h float32 a layer.
    EXPECT_THAT(volumes.stages[0].traffic,
                ElementsAre(Traffic{Span::kTensor, Collective::kAllReduce, 6 * 64 * 4, 4},
                            Traffic{Span::kTensor, Collective::kAllGather, kA, 6 * 4 * 8},
                            Traffic{Span::kTensor, Collective::kReduceScatter, kA, 4 * 4 * 8}));
}

TEST(Volumes, BoundariesCrossOncePerMicroBatchAndDirection) {
    Job job = smallJob();
    AxisVolumes volumes = counted(bare(), job, ways(2, 4, 1));
    EXPECT_EQ(volumes.stages[0].toNextBytes, 8 * kA / 2);
    EXPECT_EQ(volumes.stages[0].toPreviousBytes, 0);
    EXPECT_EQ(volumes.stages[2].toNextBytes, 8 * kA / 2);
    EXPECT_EQ(volumes.stages[2].toPreviousBytes, 8 * kA / 2);
    EXPECT_EQ(volumes.stages[3].toNextBytes, 0);
    EXPECT_EQ(volumes.stages[2].pipeMessages, 16);
    EXPECT_EQ(volumes.bytesOfAxes(2)[Axis::kPipe], 8 * kA / 2);
    job.pipeCopies = PipeCopies::kEach;
    EXPECT_EQ(counted(bare(), job, ways(2, 4, 1)).stages[2].toNextBytes, 8 * kA);

    // Interleaved: v times as much, and from the last stage round to the first.
    job = smallJob();
    job.order = PipelineOrder::kInterleaved;
    job.virtualStages = 2;
    volumes = counted(bare(8), job, ways(1, 4, 1));
    EXPECT_EQ(volumes.stages[0].toNextBytes, 2 * 8 * kA);
    EXPECT_EQ(volumes.stages[3].toNextBytes, 8 * kA);
    EXPECT_EQ(volumes.stages[0].toPreviousBytes, 8 * kA);
    EXPECT_EQ(volumes.stages[3].toPreviousBytes, 2 * 8 * kA);
}

TEST(Volumes, CopiesOfParametersByZeroStage) {
    const Model model = bare();
    const std::int64_t parameters = 4 * (12 * 64 * 64 + 13 * 64);
    Job job = smallJob();
    const auto data = [&] {
        return counted(model, job, ways(1, 1, 4)).bytesOfAxes(0)[Axis::kData];
    };
    EXPECT_EQ(data(), 2 * 3 * parameters * 4 / 4);  // float32 gradients
    job.gradientPrecision = Precision::kBfloat16;
    EXPECT_EQ(data(), 2 * 3 * parameters * 2 / 4);
    job.zeroStage = 1;
    EXPECT_EQ(data(), 3 * parameters * (2 + 2) / 4);
    job.zeroStage = 3;  // for each of the two micro-batches
    EXPECT_EQ(data(), 2 * 3 * parameters * (2 + 2 + 2) / 4);
    job.reshardAfterForward = false;
    EXPECT_EQ(data(), 2 * 3 * parameters * (2 + 2) / 4);
}

TEST(Volumes, ShardedInsideReplicatedAcross) {
    Job job = smallJob();
    job.zeroStage = 3;
    job.shard = 2;
    const std::int64_t parameters = 4 * (12 * 64 * 64 + 13 * 64);
    const AxisVolumes volumes = counted(bare(), job, ways(1, 1, 4));
    EXPECT_EQ(volumes.ranksOf(Span::kShard), 2);
    EXPECT_EQ(volumes.ranksOf(Span::kReplicate), 2);
    EXPECT_EQ(volumes.sentBytes(0, Span::kShard), 2 * parameters * (2 + 2 + 4) / 2);
    EXPECT_EQ(volumes.sentBytes(0, Span::kReplicate), 2 * 1 * (parameters / 2) * 4 / 2);
}

TEST(Volumes, ExpertsHandTokensOutAndBack) {
    TransformerShape shape = transformer(4, 64, 4, 0, 32);
    shape.experts = 8;
    shape.feedForward = 128;
    const Model model = mixtureModel(shape);
    const AxisVolumes volumes = counted(model, smallJob(), ways(1, 1, 2, 1, 4));
    // Four all-to-alls of b s K h 2 bytes a layer; one micro-batch (2 x 4 pipelines, 8 of them).
    EXPECT_EQ(volumes.sentBytes(0, Span::kExpert), 4 * 4 * (2 * kA) * 3 / 4);
    const std::int64_t experts = 4 * 8 / 4 * 3 * 64 * 128;
    EXPECT_EQ(volumes.sentBytes(0, Span::kExpertData), 2 * experts * 4 / 2);
    const std::int64_t dense = 4 * (4 * 64 * 64 + 2 * 64 + 8 * 64);
    EXPECT_EQ(volumes.sentBytes(0, Span::kData), 2 * 7 * dense * 4 / 8);
}

TEST(Volumes, ContextSendsKeysAndValuesRound) {
    Job job = smallJob();
    AxisVolumes volumes = counted(bare(), job, ways(1, 1, 1, 4));
    // (c - 1) 2 b s/c h 2 forward, twice that backward; 8 micro-batches, 4 layers.
    EXPECT_EQ(volumes.sentBytes(0, Span::kContext), 3 * (3 * 2 * kA / 4) * 4 * 8);
    job.contextMethod = ContextMethod::kAllToAll;
    volumes = counted(bare(), job, ways(1, 1, 1, 4));
    // Four all-to-alls forward and four backward of b s/c h 2.
    EXPECT_EQ(volumes.sentBytes(0, Span::kContext), 8 * (kA / 4 * 3 / 4) * 4 * 8);

    TransformerShape grouped = transformer(4, 64, 4, 0, 32);
    grouped.keyValueHeads = 1;  // a quarter of the keys
    job.contextMethod = ContextMethod::kRing;
    volumes = counted(llamaModel(grouped), job, ways(1, 1, 1, 4));
    EXPECT_EQ(volumes.sentBytes(0, Span::kContext), 3 * (3 * 2 * kA / 4 / 4) * 4 * 8);
}

TEST(Volumes, TiedEmbeddingsAreSummedBetweenTheirStages) {
    const Model model = gptModel(transformer(6, 64, 4, 1000, 32));
    const Job job = smallJob();
    const AxisVolumes apart = counted(model, job, ways(2, 4, 1));
    const std::int64_t bytes = 1000 * 64 / 2 * 4;
    EXPECT_EQ(apart.sentBytes(0, Span::kTied), bytes);  // an all-reduce of two
    EXPECT_EQ(apart.sentBytes(3, Span::kTied), bytes);
    EXPECT_EQ(apart.sentBytes(1, Span::kTied), 0);
    EXPECT_EQ(counted(model, job, ways(2, 1, 1)).sentBytes(0, Span::kTied), 0);
    // Each of the two stages keeps a copy, and sums it over its copies.
    const StageCut cut = evenCut(4, 1, 8);
    const auto own = [&](int stage) {
        std::int64_t sum = 0;
        for (const auto& local : parametersOfStage(model, cut, stage, ways(1, 4, 1))) {
            sum += local.dense;
        }
        return sum;
    };
    const std::int64_t layer = 12 * 64 * 64 + 13 * 64;
    EXPECT_EQ(own(0), 1000 * 64 + 32 * 64 + layer);
    EXPECT_EQ(own(3), layer + 2 * 64 + 1000 * 64);
}

// An adapter of 1 % beside frozen weights: only it is summed.
TEST(Volumes, FrozenParametersAreNotSummed) {
    Model model = bare();
    const std::int64_t frozen = model.layers[0].parameters;
    for (Layer& layer : model.layers) {
        layer.parameters += 500;
        layer.frozenParameters = frozen;
        layer.replicatedParameters = 0;
    }
    Job job = smallJob();
    EXPECT_EQ(counted(model, job, ways(1, 1, 4)).sentBytes(0, Span::kData),
              2 * 3 * 500 * 4 * 4 / 4);
    job.zeroStage = 3;  // but gathered it is
    EXPECT_EQ(counted(model, job, ways(1, 1, 4)).sentBytes(0, Span::kShard),
              2 * 3 * (2 * 2 * (frozen + 500) + 500 * 4) * 4 / 4);
}

// The setting of veGiantModel's announcement: GPT-13B, 40 layers of 5120, sequence 256, batch 1536,
// four hosts of eight. A rank's bytes times the ranks of a host that send them out of it.
TEST(Volumes, TheAnnouncedBenchmarkMovesWhatItsFormulasSay) {
    const Model model = gptModel(transformer(40, 5120, 40, 50257, 256));
    Job job;
    job.globalBatch = 1536;
    job.microBatch = 4;
    job.gradientPrecision = Precision::kBfloat16;
    AxisVolumes volumes = counted(model, job, ways(4, 4, 2));
    const auto middle = [&] {
        return static_cast<double>(
            8 * (volumes.stages[1].toNextBytes + volumes.stages[1].toPreviousBytes));
    };
    EXPECT_NEAR(middle(), 8.05e9, 0.005e9);
    job.pipeCopies = PipeCopies::kEach;
    volumes = counted(model, job, ways(4, 4, 2));
    EXPECT_NEAR(middle(), 32.2e9, 0.05e9);

    // All stages' sums, one copy of each: a host of two stages sends half the model for two copies.
    double sums = 0;
    for (int stage = 0; stage < 4; ++stage) {
        sums += 4 * static_cast<double>(volumes.sentBytes(stage, Span::kData));
    }
    const double tied = 50257.0 * 5120 * 2;  // the second copy of the embedding
    EXPECT_NEAR((sums - tied) / 2, 12.85e9, 0.01e9);

    job.zeroStage = 3;
    job.microBatch = 48;  // one micro-batch on 32 ranks
    volumes = counted(model, job, ways(1, 1, 32));
    EXPECT_NEAR(static_cast<double>(volumes.sentBytes(0, Span::kShard)), 74.7e9, 0.1e9);
}

TEST(Volumes, RefusesWhatDoesNotFitTogether) {
    const Model model = bare();
    const Job job = smallJob();
    EXPECT_THAT(volumesOf(model, job, ways(1, 2, 1), evenCut(4, 1, 4)).status().what(),
                HasSubstr("4 stages and 4 chunks"));
    EXPECT_THAT(volumesOf(model, job, ways(3, 1, 1), evenCut(1, 1, 4)).status().what(),
                HasSubstr("heads 4 does not divide by tensor 3"));
    Job huge = job;
    huge.globalBatch = huge.microBatch = std::int64_t{1} << 50;
    EXPECT_THAT(volumesOf(model, huge, ways(2, 1, 1), evenCut(1, 1, 4)).status().what(),
                HasSubstr("more than 2^61"));
}

}  // namespace
}  // namespace isthmus::scheduler
