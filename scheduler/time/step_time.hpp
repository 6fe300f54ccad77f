#pragma once

#include <string>
#include <vector>

#include <isthmus/status.hpp>

#include "scheduler/pipeline/simulate.hpp"
#include "scheduler/time/rates.hpp"

namespace isthmus::scheduler {

/// Seconds of one stage: of one micro-batch, unless it says `step`.
struct StageTime {
    double forward = 0;         ///< all of it, exposed communication with it
    double backward = 0;        ///< the same, with what is computed again
    double exposedForward = 0;  ///< of what is exposed, in the forward pass
    double exposedTensor = 0;   ///< of these: tensor groups; nothing hides them
    double exposedContext = 0;  ///< what attention does not hide
    double exposedExpert = 0;
    double exposedShard = 0;  ///< gathering and summing sharded parameters (ZeRO stage 3)
    double stepData = 0;      ///< summing gradients, what the last backward pass does not hide
    double stepOptimizer = 0;
};

/// A step of training as predicted.
struct StepTime {
    double seconds = 0;
    double pipelineSeconds = 0;  ///< of these: from the first forward pass to the last backward one
    double bubble = 0;           ///< idle over busy, all stages
    double utilization = 0;      ///< the model's own operations over what the devices could do
    std::vector<StageTime> stages;
    PipelineTimes times;  ///< by chunk, as simulated
    PipelineShape shape;  ///< with all micro-batches
    std::string limit;  ///< what the slowest stage spends most on: "compute", "tensor", "pipe", ...
};

/// Predicts a step: each layer's products and memory traffic, each call's bytes over the rate its
/// place gets, less what hides it, then the pipeline in virtual time.
/// What hides what: gradients' sums the backward pass of the last micro-batch but for its first
/// layer; sharded parameters' gathering the pass they are for; keys and values attention itself;
/// tensor and expert groups nothing; a boundary is sent while the next micro-batch is computed.
/// Of more than 16 micro-batches a stage, 8 and 16 are simulated and continued at the pace between.
/// kInvalidArgument: what volumesOf or simulatePipeline refuse, or a rate that is not positive.
Result<StepTime> stepTime(const Model& model, const Job& job, const Degrees& degrees,
                          const StageCut& cut, const JobPlace& place, const Rates& rates);

}  // namespace isthmus::scheduler
