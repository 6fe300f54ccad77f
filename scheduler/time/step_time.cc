#include "scheduler/time/step_time.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "scheduler/memory/stage_memory.hpp"
#include "scheduler/model/local_parameters.hpp"

namespace isthmus::scheduler {

namespace {

std::size_t at(int index) {
    return static_cast<std::size_t>(index);
}

/// Seconds of one chunk and one micro-batch, by what they go to.
struct ChunkTime {
    double forward = 0;  ///< computing
    double input = 0;
    double weight = 0;
    double attention = 0;  ///< of these, forward: what keys and values hide behind
};

/// What a byte that is kept for backward costs device memory in each direction: it is written by
/// one operation and read by the next, and so is its gradient.
constexpr double kTouchesOfAKeptByte = 2;

class Prediction {
public:
    Prediction(const Model& model, const Job& job, const AxisVolumes& volumes, const StageCut& cut,
               const JobPlace& place, const Rates& rates)
        : model_(model), job_(job), volumes_(volumes), cut_(cut), place_(place), rates_(rates) {}

    Result<StepTime> run() {
        const int chunks = cut_.chunks;
        step_.shape = {job_.order, cut_.stages, job_.virtualStages,
                       static_cast<int>(microBatches(job_, volumes_.degrees))};
        step_.times = PipelineTimes::uniform(chunks, 0, 0, 0);
        step_.stages.resize(at(cut_.stages));
        for (int stage = 0; stage < cut_.stages; ++stage) computeStage(stage);
        setLinks();
        ISTHMUS_TRY(runPipeline());
        double after = 0;
        double busy = 0;
        for (const StageTime& stage : step_.stages) {
            after = std::max(after, stage.stepData + stage.stepOptimizer);
            busy += (stage.forward + stage.backward) * step_.shape.microBatches;
        }
        step_.bubble = busy > 0 ? step_.pipelineSeconds * cut_.stages / busy - 1 : 0;
        step_.seconds = step_.pipelineSeconds + after;
        describe();
        return std::move(step_);
    }

private:
    Status runPipeline() {
        PipelineShape shape = step_.shape;
        const int few = 8 * cut_.stages;
        const bool isLong = shape.microBatches > 2 * few;
        if (isLong) shape.microBatches = 2 * few;
        const Result<PipelineRun> run = simulatePipeline(shape, step_.times);
        if (!run.ok()) return run.status();
        step_.pipelineSeconds = run->seconds;
        if (!isLong) return {};
        shape.microBatches = few;
        const Result<PipelineRun> shorter = simulatePipeline(shape, step_.times);
        if (!shorter.ok()) return shorter.status();
        const double pace = (run->seconds - shorter->seconds) / few;
        step_.pipelineSeconds += pace * (step_.shape.microBatches - 2 * few);
        return {};
    }

    double computing(std::int64_t flops, int stage) const {
        const double speed = place_.stageSpeed.empty() ? 1 : place_.stageSpeed[at(stage)];
        const double ways =
            static_cast<double>(volumes_.degrees[Axis::kTensor]) * volumes_.degrees[Axis::kContext];
        return static_cast<double>(flops) * static_cast<double>(job_.microBatch) / ways /
               (rates_.operationsPerSecond * speed * rates_.operationsReached);
    }
    double touching(std::int64_t keptBytesOfLayer) const {
        return kTouchesOfAKeptByte * static_cast<double>(keptBytesOfLayer) /
               (rates_.memoryBytesPerSecond * rates_.bytesReached);
    }

    ChunkTime timeOf(int chunk) const {
        Job keepsAll = job_;
        keepsAll.recompute = Recompute::kNone;
        Job keepsSome = job_;
        keepsSome.recompute = Recompute::kSelective;
        ChunkTime time;
        const int stage = chunk % cut_.stages;
        for (const int place : cut_.layersOfChunk(chunk)) {
            const Layer& layer = model_.layers[at(place)];
            const std::int64_t kept = keptBytes(model_, layer, keepsAll, volumes_.degrees);
            const std::int64_t scores =
                kept - keptBytes(model_, layer, keepsSome, volumes_.degrees);
            const double memory = touching(kept);
            const double forward = computing(layer.forwardFlops, stage) + memory;
            const double backward = computing(layer.backwardFlops, stage);
            const double again = computing(layer.recomputedFlops, stage) + touching(scores);
            time.forward += forward;
            time.input += backward / 2 + memory;
            time.weight += backward / 2;
            time.attention += again;
            if (job_.recompute == Recompute::kSelective) time.input += again;
            if (job_.recompute == Recompute::kFull && layer.checkpointed) time.input += forward;
        }
        return time;
    }

    double secondsIn(int stage, Span span) const {
        double seconds = 0;
        for (const Traffic& call : volumes_.stages[at(stage)].traffic) {
            if (call.span != span) continue;
            seconds += static_cast<double>(call.calls) *
                       secondsOf(call, volumes_.ranksOf(span), place_[span], rates_);
        }
        return seconds;
    }

    /// Calls of tensor groups. Sequence parallelism's inputs that are gathered once more for the
    /// gradient of the weights hide behind that of the input (arXiv 2205.05198, section 4.2.2).
    double tensorSeconds(int stage, double window) const {
        double gathers = 0;
        double others = 0;
        double scatters = 0;
        for (const Traffic& call : volumes_.stages[at(stage)].traffic) {
            if (call.span != Span::kTensor) continue;
            const double seconds =
                static_cast<double>(call.calls) *
                secondsOf(call, volumes_.ranksOf(Span::kTensor), place_[Span::kTensor], rates_);
            if (call.kind == Collective::kAllGather) gathers += seconds;
            if (call.kind == Collective::kReduceScatter) scatters += seconds;
            if (call.kind == Collective::kAllReduce) others += seconds;
        }
        const auto micro = static_cast<double>(step_.shape.microBatches);
        const double paired = std::min(gathers, scatters);
        return (others + scatters + paired) / micro + exposed((gathers - paired) / micro, window);
    }

    /// What is left of communication that overlaps with computing, which both slow down while both
    /// last: what is longer than the window is alone afterwards.
    double exposed(double seconds, double window) const {
        const double slowed = std::min(seconds, window) * (rates_.overlapSlowdown - 1);
        return std::max(0.0, seconds + slowed - window);
    }

    void computeStage(int stage) {
        std::vector<int> chunks;
        ChunkTime all;
        for (int chunk = stage; chunk < cut_.chunks; chunk += cut_.stages) {
            chunks.push_back(chunk);
            const ChunkTime time = timeOf(chunk);
            step_.times.forward[at(chunk)] = time.forward;
            step_.times.input[at(chunk)] = time.input;
            step_.times.weight[at(chunk)] = time.weight;
            all.forward += time.forward;
            all.input += time.input;
            all.weight += time.weight;
            all.attention += time.attention;
        }
        const auto micro = static_cast<double>(step_.shape.microBatches);
        StageTime& time = step_.stages[at(stage)];
        time.exposedTensor = tensorSeconds(stage, all.input);
        time.exposedExpert = secondsIn(stage, Span::kExpert) / micro;
        // Attention runs once forward and about twice that backward.
        time.exposedContext = exposed(secondsIn(stage, Span::kContext) / micro, 3 * all.attention);
        addData(stage, all, micro, time);
        const double more =
            time.exposedTensor + time.exposedExpert + time.exposedContext + time.exposedShard;
        const double passes = job_.recompute == Recompute::kFull ? 3 : 2;
        const double forward = more / passes;
        for (const int chunk : chunks) {
            const double share = static_cast<double>(chunks.size());
            step_.times.forward[at(chunk)] += forward / share;
            step_.times.input[at(chunk)] += (more - forward) / share;
        }
        time.exposedForward = forward;
        time.forward = all.forward + forward;
        time.backward = all.input + all.weight + more - forward;
    }

    void addData(int stage, const ChunkTime& all, double micro, StageTime& time) {
        const double sums = secondsIn(stage, Span::kData) + secondsIn(stage, Span::kExpertData) +
                            secondsIn(stage, Span::kShard) + secondsIn(stage, Span::kReplicate);
        const auto layers = static_cast<double>(cut_.layersOfStage(stage).size());
        const double window = (all.input + all.weight) * (1 - 1 / layers);
        if (job_.zeroStage == 3) {
            time.exposedShard = exposed(sums / micro, all.forward + window);
        } else {
            time.stepData = exposed(sums, window);
        }
        time.stepData += secondsIn(stage, Span::kTied);
        LocalParameters local;
        for (const auto& one : parametersOfStage(model_, cut_, stage, volumes_.degrees)) {
            local += one;
        }
        // Gradients are read, state is read and written, weights are written.
        const StageMemory state = stateBytes(local, job_, volumes_.degrees);
        const double bytes = static_cast<double>(state.gradients) +
                             2.0 * static_cast<double>(state.optimizer) +
                             static_cast<double>(state.weights);
        time.stepOptimizer = bytes / (rates_.memoryBytesPerSecond * rates_.bytesReached);
    }

    void setLinks() {
        if (cut_.stages == 1) return;
        const double inside = rates_.insideBytesPerSecond * rates_.bytesReached;
        const double across = cardShare(rates_, place_.pipeSendersOnNode) * rates_.cardReached;
        const std::vector<std::int64_t> crossing = boundaryBytes(model_, cut_);
        const double copies =
            job_.pipeCopies == PipeCopies::kOne ? volumes_.degrees[Axis::kTensor] : 1;
        for (int chunk = 0; chunk + 1 < cut_.chunks; ++chunk) {
            const double bytes = static_cast<double>(scaledBytes(model_, crossing[at(chunk)],
                                                                 bytesOf(job_.precision))) *
                                 static_cast<double>(job_.microBatch) /
                                 (volumes_.degrees[Axis::kContext] * copies);
            const bool crosses = place_.linkCrosses.empty()
                                     ? place_.pipeCrosses
                                     : place_.linkCrosses[at(chunk % cut_.stages)];
            step_.times.toNext[at(chunk)] = bytes / (crosses ? across : inside);
            step_.times.latency[at(chunk)] =
                crosses ? rates_.acrossLatencySeconds : rates_.insideLatencySeconds;
        }
    }

    void describe() {
        const auto micro = static_cast<double>(step_.shape.microBatches);
        const auto slowest = std::max_element(step_.stages.begin(), step_.stages.end(),
                                              [](const StageTime& left, const StageTime& right) {
                                                  return left.forward + left.backward <
                                                         right.forward + right.backward;
                                              });
        const StageTime& stage = *slowest;
        const double pass = stage.forward + stage.backward;
        const double more =
            stage.exposedTensor + stage.exposedContext + stage.exposedExpert + stage.exposedShard;
        struct Use {
            const char* name;
            double seconds;
        };
        const Use uses[] = {{"compute", micro * (pass - more)},
                            {"tensor", micro * stage.exposedTensor},
                            {"context", micro * stage.exposedContext},
                            {"expert", micro * stage.exposedExpert},
                            {"shard", micro * stage.exposedShard},
                            {"data", stage.stepData},
                            {"optimizer", stage.stepOptimizer},
                            {"pipe", step_.pipelineSeconds - micro * pass}};
        step_.limit = std::max_element(std::begin(uses), std::end(uses),
                                       [](const Use& left, const Use& right) {
                                           return left.seconds < right.seconds;
                                       })
                          ->name;
        double operations = 0;
        for (const Layer& layer : model_.layers) {
            operations +=
                static_cast<double>(layer.forwardFlops) + static_cast<double>(layer.backwardFlops);
        }
        auto ranks = static_cast<double>(ranksOf(volumes_.degrees));
        if (!place_.stageSpeed.empty()) {
            ranks *= std::accumulate(place_.stageSpeed.begin(), place_.stageSpeed.end(), 0.0) /
                     cut_.stages;
        }
        step_.utilization = operations * static_cast<double>(job_.globalBatch) /
                            (ranks * rates_.operationsPerSecond * step_.seconds);
    }

    const Model& model_;
    const Job& job_;
    const AxisVolumes& volumes_;
    const StageCut& cut_;
    const JobPlace& place_;
    const Rates& rates_;
    StepTime step_;
};

Status checkRates(const Rates& rates) {
    const double positive[] = {rates.operationsPerSecond,  rates.memoryBytesPerSecond,
                               rates.insideBytesPerSecond, rates.cardBytesPerSecond,
                               rates.operationsReached,    rates.bytesReached,
                               rates.cardReached,          rates.overlapSlowdown};
    for (const double rate : positive) {
        if (std::isfinite(rate) && rate > 0) continue;
        return Status::invalidArgument("a rate is not positive");
    }
    if (rates.operationsReached > 1 || rates.bytesReached > 1 || rates.cardReached > 1) {
        return Status::invalidArgument("more is reached than there is: a fraction above 1");
    }
    return {};
}

}  // namespace

Result<StepTime> stepTime(const Model& model, const Job& job, const Degrees& degrees,
                          const StageCut& cut, const JobPlace& place, const Rates& rates) {
    ISTHMUS_TRY(checkRates(rates));
    const Result<AxisVolumes> volumes = volumesOf(model, job, degrees, cut);
    if (!volumes.ok()) return volumes.status();
    constexpr std::int64_t kMostMicroBatches = 1 << 20;
    if (microBatches(job, degrees) > kMostMicroBatches) {
        return Status::invalidArgument("more than 2^20 micro-batches are not simulated");
    }
    return Prediction(model, job, *volumes, cut, place, rates).run();
}

}  // namespace isthmus::scheduler
