#pragma once

#include <string>
#include <vector>

#include "scheduler/pipeline/trace.hpp"
#include "scheduler/prediction/prediction.hpp"

namespace isthmus::scheduler {

/// One predicted step with all its slices.
struct StepRun {
    PipelineRun run;
    PipelineShape shape;             ///< with the micro-batches that were run
    std::vector<TraceExtra> extras;  ///< what nothing hides of collectives, and the optimizer
    double seconds = 0;
};

/// Runs the predicted step in virtual time. Of more micro-batches than `mostMicroBatches` only the
/// first ones are run, a multiple of the stages.
Result<StepRun> runStep(const Prediction& prediction, int mostMicroBatches);

/// A step as a Chrome trace; `prediction` is that of `cluster` with these seats.
Result<std::string> stepTrace(const Prediction& prediction, const Cluster& cluster,
                              std::span<const int> nodeOfRank);

}  // namespace isthmus::scheduler
