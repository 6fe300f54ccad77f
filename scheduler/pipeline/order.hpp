#pragma once

#include <cstdint>
#include <vector>

#include <isthmus/status.hpp>

#include "scheduler/model/job.hpp"

namespace isthmus::scheduler {

/// One thing that a stage does with one chunk of its layers and one micro-batch.
struct PipelineStep {
    enum class Kind : std::uint8_t {
        kForward,
        kBackward,  ///< gradients of the input and of the weights
        kInput,     ///< of the input only: the earlier stage waits for it
        kWeight,    ///< of the weights only: nobody waits for it
    };
    Kind kind = Kind::kForward;
    int chunk = 0;  ///< of the pipeline: chunk % stages is the stage
    int microBatch = 0;

    bool operator==(const PipelineStep&) const = default;
};

/// Sizes of a pipeline.
struct PipelineShape {
    PipelineOrder order = PipelineOrder::k1f1b;
    int stages = 1;
    int virtualStages = 1;
    int microBatches = 1;

    int chunks() const { return stages * virtualStages; }
    bool operator==(const PipelineShape&) const = default;
};

/// What a pipeline may have: at least one of each; interleaved needs micro-batches that divide by
/// the stages. kInvalidArgument says what is wrong.
Status checkShape(const PipelineShape& shape);

/// The steps of `stage`, in the order in which it does them.
/// GPipe: Huang et al., arXiv 1811.06965. 1F1B and interleaved: Narayanan et al., arXiv 2104.04473,
/// section 2.2. ZB-H1: Qi et al., arXiv 2401.10241, section 2.2.
std::vector<PipelineStep> stepsOf(const PipelineShape& shape, int stage);

/// The most that `stage` keeps at once when a micro-batch of chunk c keeps `bytesOfChunk[c]` from
/// its forward until its last backward step.
std::int64_t mostKept(const PipelineShape& shape, int stage,
                      const std::vector<std::int64_t>& bytesOfChunk);

/// The most passes that `stage` keeps at once, all chunks together: min(m, p - stage) in 1F1B.
std::int64_t mostInFlight(const PipelineShape& shape, int stage);

}  // namespace isthmus::scheduler
