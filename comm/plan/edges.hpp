#pragma once

#include "comm/plan/plan.hpp"

namespace isthmus {

/// Writes `after` of every step anew: what of the program order matters, transitively reduced
/// (plan_semantics: a read after the last write; a write after the last write and the reads since;
/// fences; signals to one peer in order). Names of one memory are one when plan.inPlaceSafe: the
/// plan then serves ranks in and out of place. Deterministic.
void inferEdges(Plan& plan);

}  // namespace isthmus
