#pragma once

#include "tests/conformance/collective/data.hpp"
#include "tests/conformance/collective/trial.hpp"

namespace isthmus::conformance {

/// Elements of each block of the input and of the output of rank `me`; none where it has no such
/// side.
std::vector<std::size_t> inputCounts(const Trial& trial, Rank me, int ranks);
std::vector<std::size_t> outputCounts(const Trial& trial, Rank me, int ranks);

/// What `rank` gives in `block` of its input.
Buffer operandOf(const Trial& trial, Rank rank, std::size_t block, std::size_t elements);

/// What `rank` multiplies its input by when the operator is a factor.
double factorOf(Rank rank);

/// What `me` must hold in `block` of its output, from the definition of the collective.
Buffer resultOf(const Trial& trial, Rank me, int ranks, std::size_t block, std::size_t elements);

}  // namespace isthmus::conformance
