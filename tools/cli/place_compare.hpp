#pragma once

#include <string>
#include <vector>

#include "scheduler/placement/placement.hpp"

namespace isthmus::cli {

/// The placement beside the usual orders, and beside other ways to train its model.
std::string comparedText(const scheduler::Placement& placement);

/// "tensor=4,data=2,pipe=4", repeated: degrees to compare with. kInvalidArgument names what is
/// wrong.
Result<std::vector<scheduler::Degrees>> degreesBeside(const std::vector<std::string>& lists);

}  // namespace isthmus::cli
