#pragma once

#include <cstddef>

#include <isthmus/types.hpp>

namespace isthmus::reduction {

/// One pass as the kernels see it: untyped, lengths in bytes. Not owned; lives on the caller's
/// stack.
struct Job {
    const void* const* sources;
    std::size_t sourceCount;  ///< at least 1
    void* const* targets;
    std::size_t targetCount;  ///< at least 1
    std::size_t bytes;        ///< of each source and target; a multiple of the element
    double scale;             ///< floating types only
    bool streaming;

    const std::byte* source(std::size_t position) const {
        return static_cast<const std::byte*>(sources[position]);
    }
    std::byte* target(std::size_t position) const {
        return static_cast<std::byte*>(targets[position]);
    }
};

/// What the bytes of integers and bools can go through. The bool forms read any non-zero byte as
/// true and give 0 or 1.
enum class BitOp { kAnd, kOr, kXor, kBoolAnd, kBoolOr, kBoolXor };

// The four families, each in a file of its own; each picks the best instruction set at run time.
// `type` is floating or unsigned for sums and products (signed ones have the same bits), any but
// bool for extremes.
void runSum(DataType type, const Job& job);
void runProduct(DataType type, const Job& job);
void runExtreme(DataType type, bool wantsMaximum, const Job& job);
void runBits(BitOp op, const Job& job);

/// The same in plain C++, for processors without AVX2 or NEON.
namespace portable {
void runSum(DataType type, const Job& job);
void runProduct(DataType type, const Job& job);
void runExtreme(DataType type, bool wantsMaximum, const Job& job);
void runBits(BitOp op, const Job& job);
}  // namespace portable

}  // namespace isthmus::reduction
