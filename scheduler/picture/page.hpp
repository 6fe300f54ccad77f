#pragma once

#include <string>

#include "scheduler/placement/placement.hpp"

namespace isthmus::scheduler {

/// One HTML page that needs nothing else: the tree with its groups, node to node before and after,
/// the load of cards, and the pipeline where a model was placed. `placement.orders` is not read.
std::string pageOf(const Placement& placement);

}  // namespace isthmus::scheduler
