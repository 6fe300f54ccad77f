#pragma once

#include <optional>

#include <isthmus/status.hpp>

#include "tools/cli/reach_result.hpp"

namespace isthmus::cli {

/// As one rank of whatever launched this process: tries every transport with every other rank, two
/// ranks at a time. Collective. Only rank 0 gets what all found.
Result<std::optional<ClusterReach>> surveyReach();

}  // namespace isthmus::cli
