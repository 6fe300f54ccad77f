#pragma once

#include <cstdint>
#include <vector>

#include "comm/plan/plan.hpp"

namespace isthmus::test {

/// Plans of an all-reduce, an all-gather or a broadcast that nobody designed: contributions travel
/// along random trees by messages or through mapped memory, in a random order, in scratch slots
/// that are used again. With `carelessness` (0 to 1) each signal, wait and closing meeting is left
/// out; many of those plans are wrong, and only prover and interpreter know which.
struct RandomCall {
    Collective collective = Collective::kAllReduce;
    std::vector<int> nodeOfRank;
    std::vector<Plan> plans;  ///< empty when the builder refused them
};

RandomCall randomCall(std::uint64_t seed, double carelessness);

}  // namespace isthmus::test
