#pragma once

#include <cstddef>
#include <cstdint>

#include <isthmus/types.hpp>

namespace isthmus::cli {

// Operands that every rank can compute for every other: element `index` of rank `rank` is a hash
// of both. Floating values are small integers whose sums are exact in any order, so results are
// compared bit for bit (avg: within two roundings). Parts of complex numbers count by themselves.

/// Writes `elements` of rank `rank`, beginning with its element `first`.
void fillOperand(std::byte* target, std::uint64_t elements, DataType type, ReduceOp op, Rank rank,
                 std::uint64_t first);

/// How many of `elements` values differ from rank `source`'s, beginning with its element `first`.
std::uint64_t wrongCopies(const std::byte* result, std::uint64_t elements, DataType type,
                          ReduceOp op, Rank source, std::uint64_t first);

/// How many differ from the reduction of all ranks' elements, beginning with `first`.
std::uint64_t wrongSums(const std::byte* result, std::uint64_t elements, DataType type, ReduceOp op,
                        int ranks, std::uint64_t first);

}  // namespace isthmus::cli
