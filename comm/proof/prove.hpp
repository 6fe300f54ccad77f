#pragma once

#include <span>
#include <string>
#include <vector>

#include "comm/plan/plan.hpp"

namespace isthmus {

struct ProveOptions {
    std::vector<Rank> inPlaceRanks;  ///< ranks whose input and output are one memory
    bool lanesInOrder = false;       ///< also with one credit for each lane, in message order
};

/// What prove() found. A value.
struct Proof {
    bool holds = false;
    std::string what;  ///< the first thing that is wrong, empty when it holds
    int steps = 0;     ///< of all ranks
    int edges = 0;     ///< local ones, of all ranks

    explicit operator bool() const { return holds; }
};

/// Shows that the plans of all ranks together do what `collective` promises in every run, or says
/// what is wrong. All points of plan_semantics section 6: counts and lengths of messages and
/// signals, no deadlock when sends wait for their recvs, no race, no touch of a peer's memory
/// before it has entered or after it has left, right contributors everywhere (all-reduce: equal
/// bits), `completes` exactly once on the way to each reduced output, room in scratch slots for
/// all block sizes. A barrier: nobody ends before all have started.
/// `nodeOfRank` says whose memory may be mapped. Plans are checked as they are: no edge is added.
Proof prove(Collective collective, const std::vector<Plan>& plans, std::span<const int> nodeOfRank,
            const ProveOptions& options = {});

/// By rank: whether its plan says that it may run in place.
std::vector<bool> mayRunInPlace(const std::vector<Plan>& plans);

/// prove() with nobody in place, and with everybody in place whose plan allows it. Both together
/// show every mixture (plan_semantics section 6, point 7).
Proof proveBothModels(Collective collective, const std::vector<Plan>& plans,
                      std::span<const int> nodeOfRank, bool lanesInOrder = false);

}  // namespace isthmus
