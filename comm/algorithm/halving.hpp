#pragma once

#include "comm/algorithm/group.hpp"
#include "comm/plan/builder.hpp"

namespace isthmus {

/// How many ranks of a group of `size` halve and double: the largest power of two. Each other one
/// folds into the position before it, which is mostly on its node: two rounds and twice the payload
/// more.
int halvingWorkers(int size);

/// Afterwards everybody holds the whole sum at `to`: log2(n) rounds that halve what is sent, then
/// as many that double it; 2 (n - 1) / n of the payload leaves each rank. Neighbours come first, so
/// the large halves stay inside nodes and over equal nodes of 2^k ranks a card carries the least.
/// `pieces`: halvingWorkers(n) of them. Every sum is made once and copied: equal bits everywhere.
/// Source: Rabenseifner, ICCS 2004, doi 10.1007/978-3-540-24685-5_1.
void halvingAllReduce(PlanBuilder& plan, const Group& group, const Pieces& pieces,
                      const Place& from, const Place& to, Completes completes);

/// The first half of it: position p ends with the sum of everybody's piece p at `to`. One piece for
/// each position.
void halvingReduceScatter(PlanBuilder& plan, const Group& group, const Pieces& pieces,
                          const Place& from, const Place& to, Completes completes);

}  // namespace isthmus
