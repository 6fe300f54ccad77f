#pragma once

#include "comm/algorithm/group.hpp"
#include "comm/plan/builder.hpp"

namespace isthmus {

/// Afterwards position p holds, at `to`, the sum of everybody's piece p. Each rank sends n - 1
/// messages and (n - 1) / n of the payload.
/// Source: Patarasuk and Yuan, J. Parallel Distrib. Comput. 69(2), 2009,
/// doi 10.1016/j.jpdc.2008.09.002.
void ringReduceScatter(PlanBuilder& plan, const Group& group, const Pieces& pieces,
                       const Place& from, const Place& to, Completes completes);

/// Sends `own`, which is my piece, around; afterwards everybody has the pieces of the others at
/// `to`. My own is not copied there.
void ringAllGather(PlanBuilder& plan, const Group& group, const Pieces& pieces, const Slice& own,
                   const Place& to);

/// Both, one after the other: 2 (n - 1) / n of the payload leaves each rank. Sums are made once and
/// copied, so all ranks get the same bits.
void ringAllReduce(PlanBuilder& plan, const Group& group, const Pieces& pieces, const Place& from,
                   const Place& to, Completes completes);

}  // namespace isthmus
