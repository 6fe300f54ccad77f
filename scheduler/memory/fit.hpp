#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <isthmus/status.hpp>

#include "scheduler/memory/stage_memory.hpp"

namespace isthmus::scheduler {

/// Another way to train the same model that needs less memory.
struct FitChange {
    std::string text;  ///< "recompute selective, zero stage 1"
    Job job;
    Degrees degrees;
    StageCut cut;
    std::int64_t mostBytes = 0;  ///< of the fullest stage
    double costRatio = 1;        ///< work of a step over that without the change; see fit.cc
};

/// Whether a job fits its devices.
struct FitAnswer {
    bool fits = false;
    int stage = 0;                      ///< the fullest, measured by what it lacks
    StageMemory memory;                 ///< of that stage
    std::string largest;                ///< its largest part: "activations"
    std::int64_t missingBytes = 0;      ///< 0 when it fits
    std::optional<FitChange> cheapest;  ///< when it does not: of the changes that would, the one
                                        ///< that makes a step dearer by the least

    /// One sentence for people.
    std::string text() const;
};

/// Compares with `deviceBytes`, by stage: what a device has for the job, runtime and fragmentation
/// taken off. Degrees that the job does not fix may change too; the number of ranks may not.
Result<FitAnswer> fitModel(const Model& model, const Job& job, const Degrees& degrees,
                           const StageCut& cut, const std::vector<std::int64_t>& deviceBytes);

}  // namespace isthmus::scheduler
