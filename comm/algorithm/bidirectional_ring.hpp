#pragma once

#include "comm/algorithm/group.hpp"
#include "comm/plan/builder.hpp"

namespace isthmus {

/// A ring both ways at once: every piece goes half way round in one direction and half way in the
/// other. floor(n / 2) rounds instead of n - 1, the bytes of a ring.
/// Source: Chan, van de Geijn, Gropp and Thakur, "Collective communication on architectures that
/// support simultaneous communication over multiple links", PPoPP 2006.

/// Afterwards position p holds, at `to`, the sum of everybody's piece p: what came from before it,
/// its own, and what came from behind it.
void bidirectionalReduceScatter(PlanBuilder& plan, const Group& group, const Pieces& pieces,
                                const Place& from, const Place& to, Completes completes);

/// Sends `own`, which is my piece, both ways; afterwards everybody has the pieces of the others at
/// `to`. My own is not copied there.
void bidirectionalAllGather(PlanBuilder& plan, const Group& group, const Pieces& pieces,
                            const Slice& own, const Place& to);

/// Both, one after the other. Sums are made once and copied: equal bits on all ranks.
void bidirectionalAllReduce(PlanBuilder& plan, const Group& group, const Pieces& pieces,
                            const Place& from, const Place& to, Completes completes);

}  // namespace isthmus
