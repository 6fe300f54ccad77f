#pragma once

#include <string>

#include "scheduler/pipeline/simulate.hpp"

namespace isthmus::scheduler {

/// The slices of `run` as a Chrome trace (Trace Event Format, JSON object form), which Perfetto and
/// chrome://tracing show: one process a stage, one thread for its steps and one for its messages.
std::string chromeTrace(const PipelineRun& run);

}  // namespace isthmus::scheduler
