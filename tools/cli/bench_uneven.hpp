#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "comm/algorithm/catalogue.hpp"

namespace isthmus::cli {

/// Blocks of `bench all_to_all --uneven`: rank i sends rank j (2 ((i + j) mod P) + 1) / P times the
/// even block, rounded down. So blocks go from a P-th of an even one to nearly two, and every rank
/// sends and receives as much as with even ones, but for the rounding. Elements, in rank order.
struct UnevenBlocks {
    std::vector<std::size_t> counts;  ///< to each rank, and as many from it
    std::vector<std::size_t> offsets;
    std::size_t total = 0;

    static UnevenBlocks of(std::uint64_t evenElements, Rank rank, int ranks);
};

/// Elements that the busiest node must send, or receive, in such a call.
std::uint64_t unevenBound(std::uint64_t evenElements, const Layout& layout);

}  // namespace isthmus::cli
