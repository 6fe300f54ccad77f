#pragma once

#include "comm/algorithm/tree.hpp"

namespace isthmus {

/// Two binary trees over the same positions, each for one half of the payload: who has children in
/// one has none in the other, so everybody sends and receives alike. Segments flow through both at
/// once: log2(n) rounds, then the full rate of a card.
/// Source: Sanders, Speck and Traeff, Parallel Computing 35(12), 2009,
/// doi 10.1016/j.parco.2009.09.001.
///
/// Over all positions, each with its own root:
TreePlace firstTree(int position, int size);
TreePlace secondTree(int position, int size);

/// Over positions 1 to size - 1; position 0 is above the roots of both.
TreePlace firstTreeFromRoot(int position, int size);
TreePlace secondTreeFromRoot(int position, int size);

/// Up both trees and down again: everybody ends with the whole sum at `to`. 2 payloads leave each
/// rank, and sums are made once and copied: equal bits. `pieces`: two, one for each tree.
void doubleTreeAllReduce(PlanBuilder& plan, const Group& group, const Pieces& pieces,
                         const Place& from, const Place& to, Completes completes);

}  // namespace isthmus
