#pragma once

#include <cstdint>

#include "scheduler/search/seating.hpp"
#include "scheduler/search/watch.hpp"

namespace isthmus::scheduler {

/// How long local search goes on.
struct Effort {
    std::uint64_t work = 0;  ///< members of groups that are looked at
    int shakes = 0;          ///< how often a few seats are changed at random when nothing helps
};

/// Changes seats of ranks and of blocks of ranks as long as that makes the two nodes concerned
/// cheaper (the dearer of them first, then both together), from the dearest node down; then shakes
/// a few seats and tries again, keeping the best. Deterministic: it ends with the effort, when
/// nothing helps, at `enough`, or when the watch says so.
void improve(Seating& seating, const Effort& effort, const NodeCost& enough, const Watch& watch);

}  // namespace isthmus::scheduler
