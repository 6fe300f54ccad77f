#pragma once

#include <vector>

#include <isthmus/status.hpp>

#include "comm/algorithm/catalogue.hpp"

namespace isthmus {

/// Which ranks of a job do alike, so that some stand for all: ranks lie in units of equally many
/// neighbours (nodes, racks), and unit u does with unit v what the first unit does with v - u. The
/// difference is taken digit by digit, without carry: one digit for rings and exchanges, digits of
/// two where partners differ in a bit, the digits of a butterfly for a butterfly. A value.
struct Symmetry {
    int unitRanks = 0;
    std::vector<int> radices;  ///< of a unit's number, lowest digit first; empty: nobody stands in

    bool isFolded() const { return !radices.empty(); }
    /// The rank of the first unit that does what `rank` does.
    Rank standIn(Rank rank) const { return isFolded() ? rank % unitRanks : rank; }
    /// Where `rank` lies when all are moved so that `viewer` is its own stand-in.
    Rank seenFrom(Rank rank, Rank viewer) const;
    /// The opposite: `rank` moved as the first unit is moved to `unit`.
    Rank moved(Rank rank, int unit) const;
};

/// The symmetry that plans of one request have over units of `unitRanks`; one that is not folded
/// where there is none that is known (trees, unequal nodes, a root). Every rank's plan is compared
/// up to 256 ranks, beyond them a few ranks' plans; whoever meets nobody is found by StepGraph.
/// Errors: those of makePlan().
Result<Symmetry> symmetryOf(const Layout& layout, const PlanRequest& request, int unitRanks);

}  // namespace isthmus
