#pragma once

#include "comm/algorithm/group.hpp"
#include "comm/plan/builder.hpp"

namespace isthmus {

/// Expects my piece at `at`; afterwards everybody has every piece, after ceil(log n) rounds to base
/// `radix`, any n; in each round radix - 1 messages, none of which waits for another. Messages name
/// their chunks, so nothing is rotated afterwards.
/// Source: Bruck, Ho, Kipnis, Upfal and Weathersby, IEEE Trans. Parallel Distrib. Syst. 8(11),
/// 1997, doi 10.1109/71.642949.
void bruckAllGather(PlanBuilder& plan, const Group& group, const Pieces& pieces, const Place& at,
                    int radix);

}  // namespace isthmus
