#pragma once

#include <cstdint>
#include <string_view>

#include <isthmus/status.hpp>
#include <isthmus/types.hpp>

namespace isthmus::cli {

/// What one call of a size moves on a rank, as nccl-tests counts it.
struct BenchShape {
    std::uint64_t elements = 0;      ///< the count of the call
    std::uint64_t sendElements = 0;  ///< of this collective's larger send operand
    std::uint64_t recvElements = 0;
    std::uint64_t sizeBytes = 0;  ///< max(send, recv): the size column
};

/// Blocks are rounded down to 16 bytes, as nccl-tests does; then the size is computed anew.
BenchShape benchShape(Collective collective, DataType type, int ranks, std::uint64_t sizeBytes);

/// busbw = algbw times this (collectives.md 6).
double busFactor(Collective collective, int ranks);

/// nccl-tests' names (float, half, bfloat16, f8e4m3, int8, ...; complex64 and complex128 are
/// torch's) and ours (f32, bf16, i8, ...).
Result<DataType> benchType(std::string_view name);
Result<ReduceOp> benchOp(std::string_view name);
std::string_view ncclNameOf(DataType type);

}  // namespace isthmus::cli
