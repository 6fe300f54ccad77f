#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/memory/fit.hpp"
#include "scheduler/memory/stage_memory.hpp"
#include "tests/unit/scheduler/shapes.hpp"

namespace isthmus::scheduler {
namespace {

using ::testing::HasSubstr;

constexpr double kGiB = 1024.0 * 1024 * 1024;

std::vector<StageMemory> memory(const Model& model, const Job& job, const Degrees& degrees) {
    const StageCut cut =
        evenCut(degrees[Axis::kPipe], job.virtualStages, static_cast<int>(model.layers.size()));
    const Result<std::vector<StageMemory>> stages = memoryOf(model, job, degrees, cut);
    EXPECT_TRUE(stages.ok()) << stages.status().what();
    return stages.ok() ? *stages : std::vector<StageMemory>(99);
}

/// The paper counts 12 h^2 parameters a layer and nothing else.
Model matricesOf(const PublishedModel& published) {
    Model model = gptModel(shapeOf(published, 0));
    for (Layer& layer : model.layers) {
        layer.parameters = 12 * published.hidden * published.hidden;
        layer.replicatedParameters = 0;
    }
    return model;
}

Job jobOf(const PublishedModel& published) {
    Job job;
    job.microBatch = published.microBatch;
    job.globalBatch = published.globalBatch;
    if (published.virtualStages > 1) job.order = PipelineOrder::kInterleaved;
    job.virtualStages = published.virtualStages;
    return job;
}

struct Published {
    double state;
    double none;
    double selective;   ///< with sequence parallelism
    double percent[3];  ///< of `none`: sequence parallel, selective, full
};

// arXiv 2205.05198, figure 1 (GiB, all digits) and figure 7 (percent).
constexpr Published kMemory[] = {
    {45.5625, 59.25, 9.5625, {66.84, 49.42, 7.64}},
    {45.5625, 66.84375, 12.3515625, {62.04, 56.53, 8.71}},
    {31.640625, 114.0234375, 23.076171875, {58.31, 62.04, 9.42}},
    {32.958984375, 131.25, 26.5625, {58.31, 62.04, 9.42}},
};

TEST(Memory, TheSixteenPublishedNumbersExactly) {
    for (std::size_t place = 0; place < std::size(kPublished); ++place) {
        const PublishedModel& published = kPublished[place];
        const Model model = matricesOf(published);
        const Degrees degrees = ways(published.tensor, published.pipe, 1);
        Job job = jobOf(published);
        StageMemory first = memory(model, job, degrees)[0];
        const auto gibibytes = [](std::int64_t bytes) { return static_cast<double>(bytes) / kGiB; };
        EXPECT_EQ(gibibytes(first.state()), kMemory[place].state) << published.name;
        EXPECT_EQ(gibibytes(first.activations), kMemory[place].none) << published.name;
        job.recompute = Recompute::kSelective;
        job.sequenceParallel = true;
        first = memory(model, job, degrees)[0];
        EXPECT_EQ(gibibytes(first.state()), kMemory[place].state) << published.name;
        EXPECT_EQ(gibibytes(first.activations), kMemory[place].selective) << published.name;
    }
}

TEST(Memory, PublishedShares) {
    for (std::size_t place = 0; place < std::size(kPublished); ++place) {
        const Model model = matricesOf(kPublished[place]);
        const Degrees degrees = ways(8, 1, 1);
        Job job;
        const auto kept = [&](Recompute recompute, bool isSequenceParallel) {
            job.recompute = recompute;
            job.sequenceParallel = isSequenceParallel;
            return static_cast<double>(keptBytes(model, model.layers[0], job, degrees));
        };
        const double none = kept(Recompute::kNone, false) / 100;
        const auto& percent = kMemory[place].percent;
        EXPECT_NEAR(kept(Recompute::kNone, true) / none, percent[0], 0.15);
        EXPECT_NEAR(kept(Recompute::kSelective, false) / none, percent[1], 0.15);
        EXPECT_NEAR(kept(Recompute::kFull, true) / none * 8, percent[2], 0.15);
    }
}

// arXiv 1910.02054, section 3, per parameter: 16, 4 + 12/N, 2 + 14/N, 16/N bytes.
TEST(Memory, BytesOfAParameterByZeroStage) {
    Model model;
    model.layers.resize(1);
    model.layers[0].name = "all";
    model.layers[0].parameters = 10'000'000;
    Job job;
    job.globalBatch = 8;
    job.gradientPrecision = Precision::kBfloat16;
    for (const int ranks : {1, 2, 4, 8}) {
        const std::int64_t n = model.layers[0].parameters;
        const std::int64_t expected[] = {16 * n, 4 * n + 12 * n / ranks, 2 * n + 14 * n / ranks,
                                         16 * n / ranks};
        for (int zero = 0; zero <= 3; ++zero) {
            job.zeroStage = zero;
            EXPECT_EQ(memory(model, job, ways(1, 1, ranks))[0].state(), expected[zero])
                << "stage " << zero << " on " << ranks;
        }
        // float32 all through: 4 + 4 + 8, no master weights.
        Job full = job;
        full.precision = full.gradientPrecision = Precision::kFloat32;
        EXPECT_EQ(memory(model, full, ways(1, 1, ranks))[0].state(), 16 * n / ranks);
    }
    job.zeroStage = 3;
    job.shard = 2;  // inside of a node only
    EXPECT_EQ(memory(model, job, ways(1, 1, 8))[0].state(), 16 * 10'000'000 / 2);
}

TEST(Memory, NeverGrowsWithRanksOrZeroStage) {
    TransformerShape shape = transformer(4, 96, 4, 1001, 32);
    shape.experts = 8;
    shape.feedForward = 131;
    const Model model = mixtureModel(shape);
    Job job;
    job.globalBatch = 64;
    std::int64_t before = INT64_MAX;
    for (int zero = 0; zero <= 3; ++zero) {
        job.zeroStage = zero;
        std::int64_t larger = INT64_MAX;
        for (const int ranks : {1, 2, 4, 8, 16}) {
            const std::int64_t bytes = memory(model, job, ways(1, 1, ranks))[0].state();
            EXPECT_LE(bytes, larger);
            larger = bytes;
        }
        EXPECT_LT(larger, before);
        before = larger;
    }
}

TEST(Memory, ExpertsAreOnTheirRanksOnly) {
    TransformerShape shape = transformer(2, 64, 4, 0, 32);
    shape.experts = 8;
    shape.feedForward = 128;
    Job job;
    job.globalBatch = 16;
    const std::int64_t dense = 2 * (4 * 64 * 64 + 2 * 64 + 8 * 64);
    const std::int64_t experts = 2 * 8 * 3 * 64 * 128;
    EXPECT_EQ(memory(mixtureModel(shape), job, ways(1, 1, 2, 1, 4))[0].state(),
              (dense + experts / 4) * 18);
    job.zeroStage = 1;  // dense state over 8 copies, experts' over 2
    EXPECT_EQ(memory(mixtureModel(shape), job, ways(1, 1, 2, 1, 4))[0].state(),
              dense * 6 + dense / 8 * 12 + experts / 4 * 6 + experts / 4 / 2 * 12);
}

// Stages that differ: the embedding on the first, logits on the last, fewer in flight later.
TEST(Memory, StagesDifferByWhatTheyHold) {
    const std::int64_t h = 64;
    const std::int64_t s = 32;
    const std::int64_t vocabulary = 1000;
    const Model model = gptModel(transformer(6, h, 4, vocabulary, s));  // 8 layers
    Job job;
    job.globalBatch = 16;
    const std::vector<StageMemory> stages = memory(model, job, ways(1, 4, 1));
    const std::int64_t layer = s * h * 34 + 5 * 4 * s * s;
    EXPECT_EQ(stages[0].activations, 4 * (layer + s * h));
    EXPECT_EQ(stages[1].activations, 3 * 2 * layer);
    EXPECT_EQ(stages[2].activations, 2 * 2 * layer);
    EXPECT_EQ(stages[3].activations, layer + 4 * s * h + 4 * s * vocabulary);
    const std::int64_t parameters = 12 * h * h + 13 * h;
    EXPECT_EQ(stages[0].state(), 18 * (parameters + (vocabulary + s) * h));
    EXPECT_EQ(stages[1].state(), 18 * 2 * parameters);
    EXPECT_EQ(stages[3].state(), 18 * (parameters + 2 * h + vocabulary * h));  // its own copy
    EXPECT_EQ(stages[1].working, 4 * s * h * 2);                               // messages
    job.recompute = Recompute::kFull;
    EXPECT_EQ(memory(model, job, ways(1, 4, 1))[1].working, 4 * s * h * 2 + layer);
    EXPECT_EQ(memory(model, job, ways(1, 4, 1))[1].activations, 3 * 2 * 2 * s * h);
    job.order = PipelineOrder::kGpipe;
    EXPECT_EQ(memory(model, job, ways(1, 4, 1))[1].activations, 16 * 2 * 2 * s * h);
}

FitAnswer fitted(const Model& model, const Job& job, const Degrees& degrees, std::int64_t bytes) {
    const int stages = degrees[Axis::kPipe];
    const StageCut cut = evenCut(stages, job.virtualStages, static_cast<int>(model.layers.size()));
    const Result<FitAnswer> answer =
        fitModel(model, job, degrees, cut,
                 std::vector<std::int64_t>(static_cast<std::size_t>(stages), bytes));
    EXPECT_TRUE(answer.ok()) << answer.status().what();
    return answer.ok() ? *answer : FitAnswer();
}

TEST(Fit, NamesTheLargestPartAndTheCheapestChange) {
    const Model model = gptModel(shapeOf(kPublished[0]));
    Job job;
    job.globalBatch = 25;
    job.microBatch = 5;  // has no half
    job.sequenceParallel = true;
    job.fixed[Axis::kTensor] = 8;
    job.fixed[Axis::kData] = 1;
    constexpr std::int64_t k80GiB = std::int64_t{80} << 30;
    // 22B on eight A100-80G: 46 GiB of state and 50 of activations. Attention's scores alone bring
    // it below, for 1 % more operations; all of a layer again would cost a third.
    FitAnswer answer = fitted(model, job, ways(8, 1, 1), k80GiB);
    EXPECT_FALSE(answer.fits);
    EXPECT_EQ(answer.stage, 0);
    EXPECT_GT(answer.missingBytes, 0);
    ASSERT_TRUE(answer.cheapest.has_value()) << answer.text();
    EXPECT_LE(answer.cheapest->mostBytes, k80GiB);
    EXPECT_THAT(answer.text(), HasSubstr("the largest part is activations"));
    EXPECT_THAT(answer.cheapest->text, HasSubstr("recompute selective"));
    EXPECT_LT(answer.cheapest->costRatio, 1.05);

    // Without any change it fits a larger device, and nothing makes it fit a small one.
    EXPECT_TRUE(fitted(model, job, ways(8, 1, 1), std::int64_t{200} << 30).fits);
    answer = fitted(model, job, ways(8, 1, 1), std::int64_t{16} << 30);
    EXPECT_FALSE(answer.cheapest.has_value());
    EXPECT_THAT(answer.text(), HasSubstr("no change of the ones known"));
}

TEST(Fit, EveryCheapestChangeIsTheLeastOfAllThatFit) {
    const Model model = gptModel(transformer(8, 256, 8, 2000, 128));
    Job job;
    job.globalBatch = 32;
    job.microBatch = 4;
    const std::int64_t now = fitted(model, job, ways(1, 1, 8), 1).memory.total();
    double before = 0;
    // Less room never makes the answer cheaper.
    for (int percent = 95; percent >= 15; percent -= 10) {
        const FitAnswer answer = fitted(model, job, ways(1, 1, 8), now / 100 * percent);
        ASSERT_TRUE(answer.cheapest.has_value()) << percent << " percent: " << answer.text();
        EXPECT_LE(answer.cheapest->mostBytes, now / 100 * percent);
        EXPECT_GE(answer.cheapest->costRatio, before - 1e-9) << percent << " percent";
        before = answer.cheapest->costRatio;
        // What it says is so.
        const Result<std::vector<StageMemory>> there =
            memoryOf(model, answer.cheapest->job, answer.cheapest->degrees, answer.cheapest->cut);
        ASSERT_TRUE(there.ok());
        std::int64_t most = 0;
        for (const StageMemory& stage : *there) most = std::max(most, stage.total());
        EXPECT_EQ(most, answer.cheapest->mostBytes);
    }
}

}  // namespace
}  // namespace isthmus::scheduler
