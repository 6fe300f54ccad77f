#pragma once

#include "comm/algorithm/group.hpp"
#include "comm/plan/builder.hpp"

namespace isthmus {

/// Afterwards position p holds, at `to`, the sum of everybody's piece p: each rank sends every
/// other its piece, one round, the bytes of a ring. Terms are added in the order of positions.
/// Source: pairwise exchange, Thakur, Rabenseifner and Gropp, Int. J. High Perform. Comput. Appl.
/// 19(1), 2005, doi 10.1177/1094342005051521.
void exchangeReduceScatter(PlanBuilder& plan, const Group& group, const Pieces& pieces,
                           const Place& from, const Place& to, Completes completes);

/// Sends `own`, which is my piece, to everybody; the pieces of the others arrive at `to`.
void exchangeAllGather(PlanBuilder& plan, const Group& group, const Pieces& pieces,
                       const Slice& own, const Place& to);

/// Both: two rounds, 2 (n - 1) / n of the payload leaves each rank; same bits on all ranks.
void exchangeAllReduce(PlanBuilder& plan, const Group& group, const Pieces& pieces,
                       const Place& from, const Place& to, Completes completes);

/// Piece p of `from` goes to position p, whose piece for me arrives at `to`; my own stays. With
/// `copies` the outgoing pieces pass through scratch, so that `to` may be the memory of `from`.
/// The same messages either way.
enum class Outgoing { kStraight, kThroughScratch };
void exchangePieces(PlanBuilder& plan, const Group& group, const Pieces& pieces, const Place& from,
                    const Place& to, Outgoing outgoing);

}  // namespace isthmus
