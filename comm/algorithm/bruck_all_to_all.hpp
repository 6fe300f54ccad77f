#pragma once

#include "comm/algorithm/group.hpp"
#include "comm/plan/builder.hpp"

namespace isthmus {

/// Piece p of my input goes to position p in ceil(log n) rounds to base `radix`, any n: a block
/// that has d positions to go is passed on by one digit of d in each round, together with all that
/// have the same digit. Fewer, larger messages than one for each pair; a block crosses the wire
/// once for each digit that is not 0. My own stays. Goes through scratch: may run in place.
/// Source: index operation, Bruck, Ho, Kipnis, Upfal and Weathersby, IEEE Trans. Parallel Distrib.
/// Syst. 8(11), 1997, doi 10.1109/71.642949.
void bruckAllToAll(PlanBuilder& plan, const Group& group, int radix);

}  // namespace isthmus
