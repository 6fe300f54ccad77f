#include "scheduler/prediction/step_run.hpp"

#include <algorithm>
#include <set>

namespace isthmus::scheduler {

namespace {

// A pass of a chunk is up to three slices of some 150 bytes; 60 MB is what viewers still open.
constexpr int kMostPasses = 100'000;

/// What is exposed in a pass ends with it: how much of that is hidden elsewhere is not known.
void addExposed(const Prediction& prediction, const PipelineRun& run, int chunksOfStage,
                std::vector<TraceExtra>& extras) {
    struct Part {
        const char* name;
        double StageTime::*member;
    };
    constexpr Part kParts[] = {{"tensor groups", &StageTime::exposedTensor},
                               {"context groups", &StageTime::exposedContext},
                               {"expert groups", &StageTime::exposedExpert},
                               {"sharded parameters", &StageTime::exposedShard}};
    for (const PipelineSlice& slice : run.slices) {
        if (slice.isMessage || slice.step.kind == PipelineStep::Kind::kWeight) continue;
        const StageTime& time = prediction.stages[static_cast<std::size_t>(slice.stage)].time;
        const double all =
            time.exposedTensor + time.exposedContext + time.exposedExpert + time.exposedShard;
        if (all <= 0) continue;
        const bool isForward = slice.step.kind == PipelineStep::Kind::kForward;
        const double here =
            (isForward ? time.exposedForward : all - time.exposedForward) / chunksOfStage;
        double begin = slice.end - here;
        for (const Part& part : kParts) {
            const double seconds = here * (time.*part.member) / all;
            if (seconds <= 0) continue;
            extras.push_back({part.name, slice.stage, begin, begin + seconds});
            begin += seconds;
        }
    }
}

}  // namespace

Result<StepRun> runStep(const Prediction& prediction, int mostMicroBatches) {
    StepRun step;
    step.shape = prediction.step.shape;
    if (step.shape.microBatches > mostMicroBatches) {
        const int stages = step.shape.stages;
        step.shape.microBatches = std::max(1, mostMicroBatches / stages) * stages;
    }
    Result<PipelineRun> run = simulatePipeline(step.shape, prediction.step.times, Slices::kAll);
    if (!run.ok()) return run.status();
    step.run = std::move(*run);
    addExposed(prediction, step.run, step.shape.virtualStages, step.extras);
    std::vector<double> ended(prediction.stages.size());
    for (const PipelineSlice& slice : step.run.slices) {
        double& end = ended[static_cast<std::size_t>(slice.stage)];
        if (!slice.isMessage) end = std::max(end, slice.end);
    }
    step.seconds = step.run.seconds;
    for (std::size_t stage = 0; stage < ended.size(); ++stage) {
        const StageTime& time = prediction.stages[stage].time;
        const double summed = ended[stage] + time.stepData;
        const double done = summed + time.stepOptimizer;
        const auto number = static_cast<int>(stage);
        if (time.stepData > 0) {
            step.extras.push_back({"gradients, what nothing hides", number, ended[stage], summed});
        }
        if (time.stepOptimizer > 0) step.extras.push_back({"optimizer", number, summed, done});
        step.seconds = std::max(step.seconds, done);
    }
    return step;
}

Result<std::string> stepTrace(const Prediction& prediction, const Cluster& cluster,
                              std::span<const int> nodeOfRank) {
    const Result<StepRun> step =
        runStep(prediction, std::max(1, kMostPasses / prediction.step.shape.chunks()));
    if (!step.ok()) return step.status();
    std::vector<std::string> names;
    const std::size_t ranks = nodeOfRank.size() / prediction.stages.size();
    for (std::size_t stage = 0; stage < prediction.stages.size(); ++stage) {
        std::set<int> nodes;
        for (std::size_t rank = 0; rank < ranks; ++rank) {
            nodes.insert(nodeOfRank[stage * ranks + rank]);
        }
        const Prediction::Stage& each = prediction.stages[stage];
        names.push_back(
            "stage " + std::to_string(stage) + ": " + each.firstLayer + " .. " + each.lastLayer +
            " on " + cluster.nodes[static_cast<std::size_t>(*nodes.begin())].name +
            (nodes.size() > 1 ? " and " + std::to_string(nodes.size() - 1) + " more" : ""));
    }
    return chromeTrace(step->run, step->extras, names);
}

}  // namespace isthmus::scheduler
