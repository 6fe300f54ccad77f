#pragma once

#include <string>
#include <vector>

#include "scheduler/pipeline/simulate.hpp"

namespace isthmus::scheduler {

/// Something that a stage does beside its steps and messages.
struct TraceExtra {
    std::string name;
    int stage = 0;
    double begin = 0;  ///< seconds
    double end = 0;
};

/// The slices of `run` as a Chrome trace (Trace Event Format, JSON object form), which Perfetto and
/// chrome://tracing show: one process a stage, one thread for its steps, one for its messages, and
/// one for `extras` where there are any. `stages` names the stages; empty: by their numbers.
std::string chromeTrace(const PipelineRun& run, const std::vector<TraceExtra>& extras = {},
                        const std::vector<std::string>& stages = {});

}  // namespace isthmus::scheduler
