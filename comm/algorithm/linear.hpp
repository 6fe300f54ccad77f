#pragma once

#include "comm/algorithm/group.hpp"
#include "comm/plan/builder.hpp"

namespace isthmus {

/// Everybody sends its piece straight to position 0, where piece p arrives at `to`; nothing is
/// copied for position 0 itself. One round; the root's card bounds it whatever the algorithm.
void linearGather(PlanBuilder& plan, const Group& group, const Pieces& pieces, const Slice& own,
                  const Place& to);

/// Position 0 sends piece p of `from` to position p, which finds it in `own`.
void linearScatter(PlanBuilder& plan, const Group& group, const Pieces& pieces, const Place& from,
                   const Slice& own);

}  // namespace isthmus
