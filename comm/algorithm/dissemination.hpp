#pragma once

#include "comm/algorithm/group.hpp"
#include "comm/plan/builder.hpp"

namespace isthmus {

/// Nobody is past it before everybody has come to it: ceil(log2 n) signals from each rank.
/// Source: Hensgen, Finkel and Manber, Int. J. Parallel Program. 17(1), 1988,
/// doi 10.1007/BF01379320.
void disseminate(PlanBuilder& plan, const Group& group);

}  // namespace isthmus
