#pragma once

#include <string>

#include "scheduler/placement/validate.hpp"
#include "tools/cli/place_search.hpp"

namespace isthmus::cli {

/// Tables for people; each ends with a new line.
std::string placementText(const Placed& placed);
/// Bytes by node and axis, and what decided.
std::string explanationText(const scheduler::Placement& placement);
/// The usual orders beside the placement.
std::string comparisonText(const scheduler::Placement& placement);
std::string verdictText(const scheduler::Placement& placement, const scheduler::Verdict& verdict);
std::string verdictJson(const scheduler::Placement& placement, const scheduler::Verdict& verdict);

}  // namespace isthmus::cli
