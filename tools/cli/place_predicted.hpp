#pragma once

#include <string>

#include "scheduler/placement/placement.hpp"

namespace isthmus::cli {

/// A step of a model for people: seconds, memory, the cut, what was assumed. Empty without a model.
std::string predictedText(const scheduler::Placement& placement);

/// What leaves each node by kind of group, exact also where groups are spread over several axes.
std::string exactNodesText(const scheduler::Placement& placement);

/// "12.3 GiB".
std::string gibText(std::int64_t bytes);

}  // namespace isthmus::cli
