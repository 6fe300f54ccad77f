#pragma once

#include <vector>

#include "comm/algorithm/group.hpp"
#include "comm/plan/builder.hpp"

namespace isthmus {

/// Exchanges by digits: a position is a number of mixed radix, its lowest digit first, and in each
/// phase the positions that differ in one digit only exchange all with all. Radices multiply to the
/// size of the group: any count has some, a prime count one phase. Radix 2 throughout is recursive
/// halving and doubling, a single radix is the pairwise exchange; between them phases are traded
/// for messages at the same bytes. When the first radices multiply to the ranks of a node, phases
/// stay inside nodes until only 1 / ranks of the payload is left to cross.
/// Source: recursive multiplying, Ruefenacht, Bull and Booth, Parallel Computing 69, 2017, pages 24
/// to 44; scattering and the all-to-all by digits: own.

/// `size` as a product: fours first, then twos, threes, fives ... Fours, because the three messages
/// of such a phase do not wait for each other, and two phases of two would.
std::vector<int> radicesOf(int size);

/// Position p ends with the sum of everybody's piece p at `to`; terms in the order of digits.
void butterflyReduceScatter(PlanBuilder& plan, const Group& group, const std::vector<int>& radices,
                            const Pieces& pieces, const Place& from, const Place& to,
                            Completes completes);

/// Expects piece p at position p; afterwards every position holds every piece.
void butterflyAllGather(PlanBuilder& plan, const Group& group, const std::vector<int>& radices,
                        const Pieces& pieces, const Place& at);

/// Both, last digit first on the way back: 2 (n - 1) / n of the payload leaves each rank. Every sum
/// is made once and copied: equal bits everywhere.
void butterflyAllReduce(PlanBuilder& plan, const Group& group, const std::vector<int>& radices,
                        const Pieces& pieces, const Place& from, const Place& to,
                        Completes completes);

/// Everybody's input blocks to everybody's output, a digit of the destination in each phase: a
/// block takes a hop for each digit in which its ends differ. My own block is not moved.
void butterflyAllToAll(PlanBuilder& plan, const Group& group, const std::vector<int>& radices);

}  // namespace isthmus
