#pragma once

#include <isthmus/types.hpp>

#include "tests/conformance/collective/data.hpp"

namespace isthmus::conformance {

/// Numbers of very different sizes: their sum tells in which order it was formed. `type` floating,
/// `op` a sum, product or average.
Buffer unevenOperand(DataType type, ReduceOp op, Rank rank, std::size_t elements);

/// What a deterministic reduction of them is: ((0 op 1) op 2) ... in the type, f32 for those of 16
/// bits, then the scale of an average, then one rounding.
Buffer foldOf(DataType type, ReduceOp op, int ranks, std::size_t elements);

}  // namespace isthmus::conformance
