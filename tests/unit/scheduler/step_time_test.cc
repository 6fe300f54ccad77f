#include "scheduler/time/step_time.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/scheduler/shapes.hpp"

namespace isthmus::scheduler {
namespace {

using ::testing::HasSubstr;

// arXiv 2205.05198, table 5: seconds of a step on A100, full recomputation, and selective with
// sequence parallelism; in the order of kPublished.
struct Seconds {
    double full;
    double selective;
};
constexpr Seconds kSeconds[] = {{1.42, 1.10}, {18.13, 13.75}, {49.05, 37.83}, {94.42, 71.49}};

StepTime predicted(const PublishedModel& published, bool isFull, const Rates& rates = {}) {
    const Model model = gptModel(shapeOf(published));
    Job job;
    job.microBatch = published.microBatch;
    job.globalBatch = published.globalBatch;
    if (published.virtualStages > 1) job.order = PipelineOrder::kInterleaved;
    job.virtualStages = published.virtualStages;
    job.recompute = isFull ? Recompute::kFull : Recompute::kSelective;
    job.sequenceParallel = !isFull;
    // Megatron: equal numbers of transformer layers, the embedding and the head beside them.
    const int chunks = published.pipe * published.virtualStages;
    std::vector<int> firsts = {0};
    for (int chunk = 1; chunk < chunks; ++chunk) {
        firsts.push_back(1 + chunk * (published.layers / chunks));
    }
    JobPlace place;
    place.pipeCrosses = published.pipe > 1;
    place.pipeSendersOnNode = 8;
    const Result<StepTime> step =
        stepTime(model, job, ways(published.tensor, published.pipe, 1),
                 contiguousCut(published.pipe, published.layers + 2, firsts), place, rates);
    EXPECT_TRUE(step.ok()) << step.status().what();
    return step.ok() ? *step : StepTime();
}

/// How far off the two rows that the rates are calibrated with are.
double error(const Rates& rates) {
    double sum = 0;
    for (const std::size_t row : {0u, 2u}) {
        for (const bool isFull : {false, true}) {
            const double measured = isFull ? kSeconds[row].full : kSeconds[row].selective;
            const double off =
                std::log(predicted(kPublished[row], isFull, rates).seconds / measured);
            sum += off * off;
        }
    }
    return sum;
}

TEST(StepTime, RatesAreThoseThatFitTheTwoRowsBest) {
    const double best = error({});
    for (const double change : {-0.02, 0.02}) {
        Rates rates;
        rates.operationsReached += change;
        EXPECT_GT(error(rates), best) << "operations " << change;
        rates = {};
        rates.bytesReached += 2 * change;
        EXPECT_GT(error(rates), best) << "bytes " << 2 * change;
    }
    EXPECT_LE(std::sqrt(best / 4), 0.05);
}

TEST(StepTime, OtherRowsAreWithinATenth) {
    for (const std::size_t row : {0u, 1u, 2u, 3u}) {
        for (const bool isFull : {false, true}) {
            const double measured = isFull ? kSeconds[row].full : kSeconds[row].selective;
            const StepTime step = predicted(kPublished[row], isFull);
            EXPECT_NEAR(step.seconds / measured, 1, 0.1)
                << kPublished[row].name << (isFull ? " full" : " selective");
            std::printf("%s %s: %.2f s, measured %.2f, utilization %.3f\n", kPublished[row].name,
                        isFull ? "full" : "selective", step.seconds, measured, step.utilization);
        }
    }
}

// Galvatron's measured 2 x 8 devices: all-reduce bus bandwidth of groups across the nodes, 8 at a
// time 8.130 GB/s, 4 at a time 16.22, 2 at a time 20.77, alone 44.7 of which a group takes no more
// than it can.
TEST(StepTime, CardsAreSharedEvenlyUntilOneGroupCannotTakeMore) {
    Rates rates;
    rates.cardBytesPerSecond = 8 * 8.130e9;
    EXPECT_NEAR(cardShare(rates, 4) / 16.22e9, 1, 0.01);
    rates.communicatorBytesPerSecond = 20.77e9;
    EXPECT_NEAR(cardShare(rates, 8) / 8.130e9, 1, 1e-9);
    EXPECT_NEAR(cardShare(rates, 2) / 20.77e9, 1, 1e-9);
}

TEST(StepTime, CallsTakeTheBytesTheirPlaceMoves) {
    Rates rates;
    rates.insideBytesPerSecond = 100;
    rates.cardBytesPerSecond = 10;
    rates.bytesReached = rates.cardReached = 1;
    rates.insideLatencySeconds = rates.acrossLatencySeconds = 0;
    const Traffic sum{Span::kData, Collective::kAllReduce, 800, 1};
    EXPECT_NEAR(secondsOf(sum, 8, {}, rates), 2 * 7.0 / 8 * 800 / 100, 1e-12);
    // Two nodes of four: one copy, half of it each way, twice.
    EXPECT_NEAR(secondsOf(sum, 8, {2, 4, 1, true}, rates), 2 * 0.5 * 800 / 10, 1e-12);
    // Four of them at once share the card.
    EXPECT_NEAR(secondsOf(sum, 8, {2, 4, 4, true}, rates), 4 * 80, 1e-12);
    EXPECT_NEAR(secondsOf(sum, 8, {2, 4, 1, false}, rates), 2 * 7.0 / 8 * 800 / 10, 1e-12);
    const Traffic all{Span::kExpert, Collective::kAllToAll, 800, 1};
    EXPECT_NEAR(secondsOf(all, 8, {2, 4, 1, true}, rates), 4 * 800 * 4.0 / 8 / 10, 1e-12);
    EXPECT_EQ(secondsOf(sum, 1, {}, rates), 0);
}

// The announcement: GPT-13B, sequence 256, batch 1536 on 4 x 8 devices; 100 and 800 Gbit/s.
StepTime announced(bool isSharded, double bitsPerSecond) {
    const Model model = gptModel(transformer(40, 5120, 40, 50257, 256));
    Job job;
    job.globalBatch = 1536;
    job.recompute = Recompute::kFull;
    job.gradientPrecision = Precision::kBfloat16;
    job.microBatch = isSharded ? 48 : 8;
    job.zeroStage = isSharded ? 3 : 0;
    Rates rates;
    rates.operationsPerSecond = 125e12;  // V100
    rates.memoryBytesPerSecond = 900e9;
    rates.insideBytesPerSecond = 150e9;
    rates.cardBytesPerSecond = bitsPerSecond / 8;
    JobPlace place;
    place[Span::kShard] = {4, 8, 1, false};
    place.pipeCrosses = true;
    place.pipeSendersOnNode = 8;
    const Degrees degrees = isSharded ? ways(1, 1, 32) : ways(4, 4, 2);
    const Result<StepTime> step =
        stepTime(model, job, degrees, evenCut(isSharded ? 1 : 4, 1, 42), place, rates);
    EXPECT_TRUE(step.ok()) << step.status().what();
    return step.ok() ? *step : StepTime();
}

TEST(StepTime, PipelinesAcrossSlowLinksHardlyNotice) {
    const double slow = announced(false, 100e9).seconds;
    const double fast = announced(false, 800e9).seconds;
    EXPECT_LT(slow / fast, 1.1);
    EXPECT_GE(slow, fast);
    // vLLM #6610: more card for a pipeline is no gain, and the answer says what is.
    EXPECT_EQ(announced(false, 100e9).limit, "compute");
    // ZeRO-3: 74.7 GB a micro-step at 12.5 GB/s is seconds; its limit is the shards'.
    const StepTime sharded = announced(true, 10e9);
    EXPECT_EQ(sharded.limit, "shard");
    EXPECT_GT(sharded.seconds / announced(true, 800e9).seconds, 2);
}

// DeepSpeed #6889, LLaMA-Factory #6372: sharding over all nodes makes every micro-batch cross them;
// sharding inside of each, and summing once, does not.
TEST(StepTime, ShardsInsideNodesCrossOnceAStep) {
    const Model model = gptModel(transformer(40, 5120, 40, 50257, 256));
    Job job;
    job.globalBatch = 1536;
    job.microBatch = 6;  // eight micro-batches
    job.zeroStage = 3;
    job.gradientPrecision = Precision::kBfloat16;
    JobPlace place;
    place[Span::kShard] = {4, 8, 1, true};
    const Degrees degrees = ways(1, 1, 32);
    const StageCut cut = evenCut(1, 1, 42);
    Rates rates;
    rates.cardBytesPerSecond = 100e9 / 8;
    const Result<StepTime> over = stepTime(model, job, degrees, cut, place, rates);
    job.shard = 8;
    place[Span::kShard] = {1, 8, 8, true};
    place[Span::kReplicate] = {4, 1, 8, true};
    const Result<StepTime> inside = stepTime(model, job, degrees, cut, place, rates);
    const Result<AxisVolumes> volumes = volumesOf(model, job, degrees, cut);
    ASSERT_TRUE(over.ok() && inside.ok() && volumes.ok());
    EXPECT_EQ(over->limit, "shard");
    EXPECT_GT(over->seconds / inside->seconds, 2);
    // What crosses then: 2 (r - 1) / r P g for the eight ranks of a node together.
    const double across = 8 * static_cast<double>(volumes->sentBytes(0, Span::kReplicate));
    EXPECT_NEAR(across / (2 * 3.0 / 4 * static_cast<double>(model.parameters()) * 2), 1, 1e-6);
}

// What computing hides is slowed by it; what outlasts computing goes at the card's full rate.
TEST(StepTime, CommunicationThatOutlastsComputingIsAloneThen) {
    const Model model = gptModel(transformer(8, 512, 8, 1000, 128));
    Job job;
    job.globalBatch = 4;
    JobPlace place;
    place[Span::kData] = {4, 1, 1, true};
    const auto seconds = [&](double rate) {
        Rates rates;
        rates.cardBytesPerSecond = rate;
        rates.cardReached = 1;
        const auto step = stepTime(model, job, ways(1, 1, 4), evenCut(1, 1, 10), place, rates);
        EXPECT_TRUE(step.ok());
        return step.ok() ? step->seconds : 0;
    };
    // A ring of four: 2 x 3/4 of the gradients (f32) out of each card.
    const double bytes = 2 * 3.0 / 4 * 4 * static_cast<double>(model.parameters());
    EXPECT_NEAR((seconds(5e6) - seconds(1e7)) / (bytes / 1e7), 1, 1e-4);
}

TEST(StepTime, MoreLinkIsNeverSlower) {
    const Model model = gptModel(transformer(8, 512, 8, 1000, 128));
    Job job;
    job.globalBatch = 64;
    for (const int zero : {0, 1, 3}) {
        job.zeroStage = zero;
        double before = 1e30;
        for (const double rate : {1e8, 1e9, 1e10, 1e11}) {
            Rates rates;
            rates.cardBytesPerSecond = rate;
            JobPlace place;
            place[Span::kData] = place[Span::kShard] = {4, 1, 2, true};
            place.pipeCrosses = true;
            const Result<StepTime> step =
                stepTime(model, job, ways(2, 2, 4), evenCut(2, 1, 10), place, rates);
            ASSERT_TRUE(step.ok());
            EXPECT_LE(step->seconds, before);
            EXPECT_LE(step->utilization, 1);  // Megatron-Bridge #2665: no more than there is
            before = step->seconds;
        }
    }
}

TEST(StepTime, ManyMicroBatchesAreContinuedAtTheirPace) {
    const Model model = gptModel(transformer(10, 512, 8, 4000, 128));
    for (const PipelineOrder order : {PipelineOrder::kGpipe, PipelineOrder::k1f1b,
                                      PipelineOrder::kInterleaved, PipelineOrder::kZeroBubbleH1}) {
        Job job;
        job.globalBatch = 800;
        job.order = order;
        job.virtualStages = order == PipelineOrder::kInterleaved ? 3 : 1;
        JobPlace place;
        place.pipeCrosses = true;
        const Result<StepTime> step =
            stepTime(model, job, ways(1, 4, 1), evenCut(4, job.virtualStages, 12), place, Rates());
        ASSERT_TRUE(step.ok()) << step.status().what();
        const Result<PipelineRun> all = simulatePipeline(step->shape, step->times);
        ASSERT_TRUE(all.ok());
        EXPECT_NEAR(step->pipelineSeconds / all->seconds, 1, 1e-9) << nameOf(order);
        EXPECT_NEAR(step->bubble, all->bubble(), 1e-6) << nameOf(order);
    }
}

TEST(StepTime, RefusesImpossibleRates) {
    const Model model = gptModel(transformer(4, 64, 4, 0, 32));
    Rates rates;
    rates.operationsReached = 1.2;
    EXPECT_THAT(stepTime(model, Job(), ways(1, 1, 1), evenCut(1, 1, 4), {}, rates).status().what(),
                HasSubstr("above 1"));
    rates = {};
    rates.cardBytesPerSecond = 0;
    EXPECT_FALSE(stepTime(model, Job(), ways(1, 1, 1), evenCut(1, 1, 4), {}, rates).ok());
}

}  // namespace
}  // namespace isthmus::scheduler
