#pragma once

#include <vector>

#include "comm/plan/plan.hpp"

namespace isthmus {

/// The plans of all ranks run for `segments` segments of which at most `window` are active, as one
/// set of plans (plan_semantics section 7): chunk j of a block becomes chunk segment *
/// chunksPerBlock + j of a grid that is `segments` times as fine, segment g uses scratch slots of
/// g mod window and starts at a rank when segment g - window has ended there. For the prover.
std::vector<Plan> repeat(const std::vector<Plan>& plans, int segments, int window);

}  // namespace isthmus
