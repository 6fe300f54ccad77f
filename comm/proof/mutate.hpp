#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string_view>
#include <vector>

#include "comm/plan/plan.hpp"

namespace isthmus {

/// What can be done wrong to a set of plans. All but kEdge are mistakes of an author: edges are
/// inferred again after them.
enum class Damage : std::uint8_t {
    kEdge,         ///< an inferred edge is missing
    kChunk,        ///< another chunk of the same buffer in a source or target
    kOwner,        ///< another rank's memory: at(q)
    kPeer,         ///< another peer of a message or signal
    kPeerSwap,     ///< the peers of two sends are exchanged
    kStepSwap,     ///< two neighbouring steps are exchanged
    kSourceTwice,  ///< a source of a reduce is the next one once more
    kSourceGone,   ///< a source of a reduce is missing
    kPairGone,     ///< a signal and its wait are missing
    kSignalGone,   ///< only the signal is missing
    kCompletes,    ///< `completes` is the other way round
};

inline constexpr int kDamages = 11;
std::string_view nameOf(Damage damage);

/// Where a mutant differs from the plans it comes from.
struct MutationSite {
    Damage damage = Damage::kEdge;
    Rank rank = 0;
    int step = 0;
    int source = -1;  ///< kChunk, kOwner: -1 is the target; kSource*: which
    int index = 0;    ///< kEdge: place in `after`; kChunk, kOwner: place in the slice; kPeer: place
                      ///< in `peers`; kPeerSwap: the other step; kPairGone, kSignalGone: the peer
};

/// Every place where the plans can be damaged, in a fixed order.
std::vector<MutationSite> mutationSites(const std::vector<Plan>& plans);

/// The damaged plans; nothing when this place has no other value to take.
std::optional<std::vector<Plan>> mutated(const std::vector<Plan>& plans, const MutationSite& site,
                                         std::mt19937_64& random);

/// True when the edge that `site` (kEdge) drops follows from the rest of the graph.
bool isEdgeImplied(const std::vector<Plan>& plans, const MutationSite& site);

/// True when both are the same graph up to the order of steps in the text.
bool haveSameShape(const std::vector<Plan>& a, const std::vector<Plan>& b);

/// True when any two steps that touch one location, one of them writing, are ordered: in the model
/// without and, for plans that may, in the one with everybody in place. Compares all pairs, so it
/// is slow and independent of how prove() finds races.
bool areConflictsOrdered(const std::vector<Plan>& plans);

}  // namespace isthmus
