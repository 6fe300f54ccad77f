#pragma once

#include <vector>

#include "scheduler/placement/placement.hpp"
#include "tools/cli/place_options.hpp"

namespace isthmus::cli {

/// A search that ran, and what it answered.
struct Placed {
    scheduler::Placement placement;
    std::vector<scheduler::Candidate> others;  ///< other degrees, the next best first
    scheduler::SearchAnswer search;
};

/// Searches, tells on standard error how far it is after a second, and ends early with the best so
/// far at the first SIGINT. Where devices may be left over, several ways of that are tried.
Result<Placed> place(const PlaceQuestion& asked);

}  // namespace isthmus::cli
