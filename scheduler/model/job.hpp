#pragma once

#include <cstdint>
#include <string_view>

#include "scheduler/axis.hpp"
#include "scheduler/model/model.hpp"

namespace isthmus::scheduler {

enum class Precision : std::uint8_t { kFloat32, kBfloat16, kFloat16 };
enum class Optimizer : std::uint8_t { kAdam, kMomentum, kSgd };
enum class Recompute : std::uint8_t { kNone, kSelective, kFull };
enum class PipelineOrder : std::uint8_t { kGpipe, k1f1b, kInterleaved, kZeroBubbleH1 };
enum class PipeCopies : std::uint8_t { kOne, kEach };  ///< of a boundary, of a tensor group
enum class ContextMethod : std::uint8_t { kRing, kAllToAll };
enum class Objective : std::uint8_t { kCrossNodeBytes, kStepTime, kMemory };

std::string_view nameOf(Precision precision);
std::string_view nameOf(Optimizer optimizer);
std::string_view nameOf(Recompute recompute);
std::string_view nameOf(PipelineOrder order);
std::string_view nameOf(PipeCopies copies);
std::string_view nameOf(ContextMethod method);
std::string_view nameOf(Objective objective);

/// How it is trained. A value; the defaults are those of mixed-precision training with Adam.
struct Job {
    std::int64_t globalBatch = 1;  ///< samples of a step
    std::int64_t microBatch = 1;   ///< samples that one pass of a pipeline takes
    Precision precision = Precision::kBfloat16;
    Precision gradientPrecision = Precision::kFloat32;  ///< as summed and kept
    Optimizer optimizer = Optimizer::kAdam;
    Precision optimizerPrecision = Precision::kFloat32;  ///< of its moments
    bool masterWeights = true;                           ///< a float32 copy beside 16-bit weights
    Recompute recompute = Recompute::kNone;
    int zeroStage = 0;  ///< 0 nothing sharded, 1 optimizer, 2 gradients too, 3 parameters too
    bool reshardAfterForward = true;  ///< stage 3: gathered again for backward
    bool sequenceParallel = false;    ///< tensor groups split the rest of a layer by tokens
    PipelineOrder order = PipelineOrder::k1f1b;
    int virtualStages = 1;  ///< chunks of layers on each stage
    PipeCopies pipeCopies = PipeCopies::kOne;
    ContextMethod contextMethod = ContextMethod::kRing;
    int shard = 0;               ///< of the copies of a dense layer, how many share one
                                 ///< sharded state; 0: all. Context ranks always share
    std::int64_t sequence = 0;   ///< tokens of a sample; 0: what the model says
    Degrees fixed = Degrees(0);  ///< 0: free
    Objective objective = Objective::kCrossNodeBytes;

    bool operator==(const Job&) const = default;
};

int bytesOf(Precision precision);

/// Bytes of the optimizer for each parameter that is trained: its state and the master weight.
int optimizerBytesPerParameter(const Job& job);

/// Whether the numbers are possible by themselves. kInvalidArgument names the member.
Status checkJob(const Job& job);

/// Whether `job` can train `model` in these ways: what must divide does. kInvalidArgument says
/// which number does not and what it could be.
Status checkDegrees(const Model& model, const Job& job, const Degrees& degrees);

/// Pipelines that read different samples: data x expert.
std::int64_t pipelinesOf(const Degrees& degrees);

/// Micro-batches of a step for each pipeline; the degrees fit the job.
std::int64_t microBatches(const Job& job, const Degrees& degrees);

/// Of the pipelines, how many share one sharded state: `shard`, or all of them.
std::int64_t shardWays(const Job& job, const Degrees& degrees);

}  // namespace isthmus::scheduler
