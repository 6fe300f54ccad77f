#pragma once

#include "comm/algorithm/group.hpp"
#include "comm/plan/builder.hpp"

namespace isthmus {

/// Afterwards everybody holds the whole sum at `to`, after log2(n) rounds of the whole payload.
/// Ranks beyond the largest power of two fold into partners before and are told after (two rounds
/// more). Partners add the same two terms, so all ranks get the same bits.
/// Source: recursive doubling, Thakur, Rabenseifner and Gropp, 2005, doi
/// 10.1177/1094342005051521.
void doublingAllReduce(PlanBuilder& plan, const Group& group, const Chunks& chunks,
                       const Place& from, const Place& to, Completes completes);

}  // namespace isthmus
