#pragma once

#include "tools/cli/launch_plan.hpp"

namespace isthmus::cli {

/// Starts the ranks of `plan`, waits for them and returns the exit code of the job. Whatever
/// happens to this process, no rank, node or file outlives it.
int launch(LaunchPlan plan);

}  // namespace isthmus::cli
