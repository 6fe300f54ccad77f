#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <isthmus/status.hpp>
#include <isthmus/types.hpp>

#include "scheduler/model/job.hpp"
#include "scheduler/model/model.hpp"
#include "scheduler/model/stage_cut.hpp"

namespace isthmus::scheduler {

/// Which ranks a message of a step concerns: those whose other coordinates are the same. Ranks of
/// one dense layer's copies are counted with context fastest, then expert, then data.
enum class Span : std::uint8_t {
    kTensor,
    kContext,
    kExpert,
    kData,        ///< data x expert x context: copies of a dense layer
    kShard,       ///< of these, `shard` x context that follow each other share a sharded state
    kReplicate,   ///< one of each shard group
    kExpertData,  ///< data x context: copies of the same experts
    kTied,        ///< the two stages of a pipeline that hold tied parameters
};

std::string_view nameOf(Span span);

/// One kind of collective call of a step, as each rank of its group makes it.
struct Traffic {
    Span span = Span::kTensor;
    Collective kind = Collective::kAllReduce;
    std::int64_t bytes = 0;  ///< all-reduce, all-gather's output, reduce-scatter's input;
                             ///< all-to-all: what one rank hands in, its own part included
    std::int64_t calls = 0;  ///< of a step

    bool operator==(const Traffic&) const = default;
};

/// What the ranks of one stage send in a step.
struct StageVolumes {
    std::vector<Traffic> traffic;      ///< one entry for each span, kind and size; ordered by them
    std::int64_t toNextBytes = 0;      ///< activations: from one rank to one of the next stage
    std::int64_t toPreviousBytes = 0;  ///< their gradients
    std::int64_t pipeMessages = 0;     ///< both together

    bool operator==(const StageVolumes&) const = default;
};

/// All bytes of a step, by stage. Only interleaved pipelines send from the last stage to its next,
/// the first.
struct AxisVolumes {
    Degrees degrees;
    std::int64_t shard = 1;  ///< of data x expert, how many share one sharded state
    std::vector<StageVolumes> stages;

    std::int64_t ranksOf(Span span) const;  ///< in one group

    /// Bytes that one rank of `stage` sends in a step on a flat ring of the span's group
    /// (all-to-all: to all others). A part of a byte counts as one.
    std::int64_t sentBytes(int stage, Span span) const;

    /// The same by axis, all that concerns copies of parameters on `data`, the larger direction
    /// on `pipe`. Exact for one kind of group an axis: expert, context or shard beside data make
    /// groups that only `stages` tells apart.
    AxisBytes bytesOfAxes(int stage) const;

    bool operator==(const AxisVolumes&) const = default;
};

/// Counts a step (reference formulas: Korthikanti et al., arXiv 2205.05198, section 4; Rajbhandari
/// et al., ZeRO, arXiv 1910.02054, section 7). kInvalidArgument: checkDegrees or checkCut refuses,
/// or a total leaves 64 bits.
Result<AxisVolumes> volumesOf(const Model& model, const Job& job, const Degrees& degrees,
                              const StageCut& cut);

}  // namespace isthmus::scheduler
