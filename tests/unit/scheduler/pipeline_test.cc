#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "scheduler/pipeline/simulate.hpp"
#include "scheduler/pipeline/trace.hpp"

namespace isthmus::scheduler {
namespace {

using ::testing::HasSubstr;

double secondsOf(const PipelineShape& shape, const PipelineTimes& times) {
    const Result<PipelineRun> run = simulatePipeline(shape, times);
    EXPECT_TRUE(run.ok()) << run.status().what();
    return run.ok() ? run->seconds : -1;
}

const PipelineOrder kOrders[] = {PipelineOrder::kGpipe, PipelineOrder::k1f1b,
                                 PipelineOrder::kInterleaved, PipelineOrder::kZeroBubbleH1};

TEST(Pipeline, EveryOrderDoesEverythingOnce) {
    for (const PipelineOrder order : kOrders) {
        const int chunks = order == PipelineOrder::kInterleaved ? 3 : 1;
        const PipelineShape shape{order, 4, chunks, 8};
        for (int stage = 0; stage < 4; ++stage) {
            std::map<std::pair<int, int>, int> forward;
            std::map<std::pair<int, int>, int> backward;
            for (const PipelineStep& step : stepsOf(shape, stage)) {
                EXPECT_EQ(step.chunk % 4, stage);
                const std::pair<int, int> pass(step.chunk, step.microBatch);
                using Kind = PipelineStep::Kind;
                if (step.kind == Kind::kForward) ++forward[pass];
                if (step.kind == Kind::kBackward) backward[pass] += 2;
                if (step.kind == Kind::kInput || step.kind == Kind::kWeight) ++backward[pass];
            }
            EXPECT_EQ(forward.size(), 8u * static_cast<unsigned>(chunks));
            EXPECT_EQ(backward.size(), forward.size());
            for (const auto& [pass, times] : forward) EXPECT_EQ(times, 1);
            for (const auto& [pass, times] : backward) EXPECT_EQ(times, 2);
        }
    }
}

TEST(Pipeline, BubblesAreTheClosedForms) {
    for (const int p : {1, 2, 3, 4, 8}) {
        for (const int m : {8, 24, 48}) {
            const double forward = 1;
            const double input = 1.25;
            const double weight = 0.75;
            const double all = forward + input + weight;
            const PipelineTimes plain = PipelineTimes::uniform(p, forward, input, weight);
            EXPECT_NEAR(secondsOf({PipelineOrder::kGpipe, p, 1, m}, plain), (m + p - 1) * all,
                        1e-9);
            EXPECT_NEAR(secondsOf({PipelineOrder::k1f1b, p, 1, m}, plain), (m + p - 1) * all, 1e-9);
            EXPECT_NEAR(secondsOf({PipelineOrder::kZeroBubbleH1, p, 1, m}, plain),
                        m * all + (p - 1) * (forward + input - weight), 1e-9)
                << p << " stages, " << m << " micro-batches";
            if (m % p != 0) continue;
            for (const int v : {2, 3}) {
                const PipelineTimes parts =
                    PipelineTimes::uniform(p * v, forward / v, input / v, weight / v);
                EXPECT_NEAR(secondsOf({PipelineOrder::kInterleaved, p, v, m}, parts),
                            m * all + (p - 1) * all / v, 1e-9);
            }
        }
    }
}

// Qi et al., arXiv 2401.10241: a third of 1F1B's bubble when the three steps take equal time.
TEST(Pipeline, ZeroBubbleH1LeavesAThird) {
    const PipelineTimes times = PipelineTimes::uniform(8, 1, 1, 1);
    const Result<PipelineRun> plain = simulatePipeline({PipelineOrder::k1f1b, 8, 1, 32}, times);
    const Result<PipelineRun> zero =
        simulatePipeline({PipelineOrder::kZeroBubbleH1, 8, 1, 32}, times);
    ASSERT_TRUE(plain.ok() && zero.ok());
    EXPECT_NEAR(plain->bubble(), 7.0 / 32, 1e-12);
    EXPECT_NEAR(zero->bubble(), 7.0 / 32 / 3, 1e-12);
}

/// Five stages, one of them slower; its steps take 2 seconds each.
PipelineTimes withSlowest(std::size_t slowest) {
    PipelineTimes times = PipelineTimes::uniform(5, 1, 1, 1);
    times.forward = {1, 0.5, 1, 0.75, 1};
    times.forward[slowest] = 2;
    times.input = times.weight = times.forward;
    return times;
}

// Alpa's form (Zheng et al., arXiv 2201.12023, section 5): the sum and m - 1 times the slowest.
TEST(Pipeline, UnequalStagesFollowTheSlowest) {
    for (const std::size_t slowest : {0u, 2u, 4u}) {
        const PipelineTimes times = withSlowest(slowest);
        const double sum = 3 * std::accumulate(times.forward.begin(), times.forward.end(), 0.0);
        EXPECT_NEAR(secondsOf({PipelineOrder::kGpipe, 5, 1, 20}, times), sum + 19 * 6, 1e-9);
        EXPECT_LE(secondsOf({PipelineOrder::k1f1b, 5, 1, 20}, times), sum + 19 * 6 + 1e-9);
    }
    // Last: it waits for four forward passes and four backward ones follow it.
    EXPECT_NEAR(secondsOf({PipelineOrder::k1f1b, 5, 1, 20}, withSlowest(4)), 3.25 + 120 + 6.5,
                1e-9);
    // First: five forward passes (10 s) are done while the first gradient comes back (2 + 9.75 s).
    EXPECT_NEAR(secondsOf({PipelineOrder::k1f1b, 5, 1, 20}, withSlowest(0)), 120 + 11.75 - 10,
                1e-9);
}

TEST(Pipeline, LinksAddTheirTimeOnceEachWay) {
    // One micro-batch: everything is on the critical path.
    PipelineTimes times = PipelineTimes::uniform(4, 1, 1, 1, 0.5);
    times.latency.assign(4, 0.25);
    EXPECT_NEAR(secondsOf({PipelineOrder::k1f1b, 4, 1, 1}, times), 4 * 3 + 2 * 3 * 0.75, 1e-9);
    // GPipe fills once and drains once: links that are faster than a stage are hidden otherwise.
    EXPECT_NEAR(secondsOf({PipelineOrder::kGpipe, 4, 1, 16}, times), 19 * 3 + 2 * 3 * 0.75, 1e-9);
    // A link that is slower than a stage sets the pace: m - 1 messages after the first.
    times = PipelineTimes::uniform(2, 1, 1, 1, 5);
    EXPECT_NEAR(secondsOf({PipelineOrder::kGpipe, 2, 1, 16}, times),
                (1 + 16 * 5 + 1) + 2 + (16 * 5 + 2), 1e-9);
}

TEST(Pipeline, BlockingMessagesAreNotHidden) {
    PipelineTimes times = PipelineTimes::uniform(2, 1, 1, 1, 0.5);
    const double posted = secondsOf({PipelineOrder::kGpipe, 2, 1, 8}, times);
    times.isBlocking = true;
    // The first stage pays 0.5 after each of its forward passes, the second after each backward.
    EXPECT_NEAR(posted, 9 * 3 + 2 * 0.5, 1e-9);
    EXPECT_NEAR(secondsOf({PipelineOrder::kGpipe, 2, 1, 8}, times), 9 * 3 + 2 * 8 * 0.5, 1e-9);
}

TEST(Pipeline, KeepsWhatItsOrderSays) {
    const int p = 4;
    const int m = 16;
    for (int stage = 0; stage < p; ++stage) {
        EXPECT_EQ(mostInFlight({PipelineOrder::kGpipe, p, 1, m}, stage), m);
        EXPECT_EQ(mostInFlight({PipelineOrder::k1f1b, p, 1, m}, stage), p - stage);
        EXPECT_EQ(mostInFlight({PipelineOrder::k1f1b, p, 1, 2}, stage), std::min(2, p - stage));
        EXPECT_EQ(mostInFlight({PipelineOrder::kZeroBubbleH1, p, 1, m}, stage), p);
        EXPECT_EQ(mostInFlight({PipelineOrder::kInterleaved, p, 3, m}, stage),
                  2 * (p - 1 - stage) + 2 * p + 1);
    }
    // L (1 + (p - 1) / (p v)) layers' worth on the first stage (arXiv 2205.05198, section 4.2.3).
    EXPECT_EQ(mostInFlight({PipelineOrder::kInterleaved, 8, 3, 64}, 0), 8 * 3 + 7);
    // Unequal chunks. By hand: F0 F0 F2 F2 F0 B2 F0: four of chunk 0, one of chunk 2.
    EXPECT_EQ(mostKept({PipelineOrder::kInterleaved, 2, 2, 4}, 0, {100, 0, 1, 0}), 401);
}

TEST(Pipeline, TraceHasASliceForEveryStepAndMessage) {
    PipelineTimes times = PipelineTimes::uniform(2, 1, 1, 1, 0.5);
    const Result<PipelineRun> run =
        simulatePipeline({PipelineOrder::k1f1b, 2, 1, 3}, times, Slices::kAll);
    ASSERT_TRUE(run.ok());
    const auto trace = nlohmann::json::parse(chromeTrace(*run));
    int steps = 0;
    int messages = 0;
    double end = 0;
    std::map<std::pair<int, int>, double> lastEnd;
    for (const auto& event : trace["traceEvents"]) {
        if (event["ph"] != "X") continue;
        const double begins = event["ts"];
        const double takes = event["dur"];
        double& free = lastEnd[{event["pid"], event["tid"]}];
        EXPECT_GE(begins, free - 1e-3) << "two at once on one stage";
        free = begins + takes;
        end = std::max(end, free);
        ++(event["tid"] == 0 ? steps : messages);
    }
    EXPECT_EQ(steps, 2 * 3 * 2);
    EXPECT_EQ(messages, 3 + 3);
    EXPECT_NEAR(end, run->seconds * 1e6, 1e-3);
}

TEST(Pipeline, RefusesImpossibleShapes) {
    const PipelineTimes times = PipelineTimes::uniform(4, 1, 1, 1);
    const auto complaint = [&](const PipelineShape& shape) {
        return simulatePipeline(shape, times).status().what();
    };
    EXPECT_THAT(complaint({PipelineOrder::kInterleaved, 2, 2, 3}), HasSubstr("do not divide"));
    EXPECT_THAT(complaint({PipelineOrder::k1f1b, 2, 2, 4}), HasSubstr("only an interleaved"));
    EXPECT_THAT(complaint({PipelineOrder::k1f1b, 0, 1, 4}), HasSubstr("at least one"));
    EXPECT_THAT(complaint({PipelineOrder::k1f1b, 3, 1, 4}), HasSubstr("list of 3 numbers"));
    EXPECT_THAT(complaint({PipelineOrder::kGpipe, 1 << 20, 1, 1 << 20}),
                HasSubstr("5000000 passes"));
    EXPECT_EQ(complaint({PipelineOrder::k1f1b, 4, 1, 1}), "");
}

}  // namespace
}  // namespace isthmus::scheduler
