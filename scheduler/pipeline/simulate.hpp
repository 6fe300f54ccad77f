#pragma once

#include <vector>

#include <isthmus/status.hpp>

#include "scheduler/pipeline/order.hpp"

namespace isthmus::scheduler {

/// Seconds of one micro-batch, by chunk of the pipeline.
struct PipelineTimes {
    std::vector<double> forward;
    std::vector<double> input;    ///< the part of backward that the earlier stage waits for
    std::vector<double> weight;   ///< the rest of backward
    std::vector<double> toNext;   ///< activations of a chunk to the next one; its gradient coming
                                  ///< back takes as long. Between chunks of one stage: 0
    std::vector<double> latency;  ///< after these seconds a message is there; the link is free
    bool isBlocking = false;      ///< a stage computes only after its message has left

    /// All chunks alike, links free.
    static PipelineTimes uniform(int chunks, double forward, double input, double weight,
                                 double toNext = 0);
};

/// One step or message with its time.
struct PipelineSlice {
    PipelineStep step;
    bool isMessage = false;  ///< from `stage` to `toStage`, of what the step made
    int stage = 0;
    int toStage = 0;
    double begin = 0;
    double end = 0;
};

/// A step of training, as simulated.
struct PipelineRun {
    double seconds = 0;
    std::vector<double> busySeconds;    ///< by stage: computing
    std::vector<PipelineSlice> slices;  ///< empty unless asked for

    /// Idle seconds of all stages over the busy ones.
    double bubble() const;
};

enum class Slices : bool { kNone, kAll };

/// Runs the steps of every stage as their inputs arrive. A link from one stage to another carries
/// one message after the other, in the order in which they were made. Deterministic.
/// kInvalidArgument: checkShape refuses, or `times` are not those of shape.chunks() chunks.
Result<PipelineRun> simulatePipeline(const PipelineShape& shape, const PipelineTimes& times,
                                     Slices slices = Slices::kNone);

}  // namespace isthmus::scheduler
