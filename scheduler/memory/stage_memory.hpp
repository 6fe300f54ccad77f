#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <isthmus/status.hpp>

#include "scheduler/model/job.hpp"
#include "scheduler/model/local_parameters.hpp"
#include "scheduler/model/model.hpp"
#include "scheduler/model/stage_cut.hpp"

namespace isthmus::scheduler {

/// What each rank of one stage keeps, in bytes, when it keeps the most.
struct StageMemory {
    std::int64_t weights = 0;
    std::int64_t gradients = 0;
    std::int64_t optimizer = 0;    ///< its state and the master weights
    std::int64_t activations = 0;  ///< of all micro-batches in flight
    std::int64_t working = 0;  ///< gathered parameters, a recomputed layer, messages on their way

    std::int64_t state() const { return weights + gradients + optimizer; }
    std::int64_t total() const { return state() + activations + working; }

    bool operator==(const StageMemory&) const = default;
};

/// A part of StageMemory and what people call it.
struct MemoryPart {
    std::string_view name;
    std::int64_t StageMemory::*member;
};

inline constexpr MemoryPart kMemoryParts[] = {
    {"weights", &StageMemory::weights},     {"gradients", &StageMemory::gradients},
    {"optimizer", &StageMemory::optimizer}, {"activations", &StageMemory::activations},
    {"working", &StageMemory::working},
};

/// Bytes that `layer` keeps from a micro-batch's forward pass until its backward one, on each rank
/// of its tensor and context groups (Korthikanti et al., arXiv 2205.05198, sections 4 and 5).
std::int64_t keptBytes(const Model& model, const Layer& layer, const Job& job,
                       const Degrees& degrees);

/// Bytes of weights, gradients and optimizer state; sharded as arXiv 1910.02054, section 3 has it.
StageMemory stateBytes(const LocalParameters& local, const Job& job, const Degrees& degrees);

/// By stage. What a runtime, its communicators and fragmentation take is not in it.
/// kInvalidArgument: checkDegrees or checkCut refuses, or a sum leaves 64 bits.
Result<std::vector<StageMemory>> memoryOf(const Model& model, const Job& job,
                                          const Degrees& degrees, const StageCut& cut);

}  // namespace isthmus::scheduler
