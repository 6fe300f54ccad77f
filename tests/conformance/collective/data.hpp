#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <isthmus/types.hpp>

#include "tests/unit/reduce/expected.hpp"

namespace isthmus::conformance {

using test::Buffer;

/// Which values a rank gives in one block of its input.
struct Origin {
    std::uint64_t seed = 0;
    int rank = 0;
    std::size_t block = 0;
};

/// `elements` of `type` from a hash of origin and index, so that a block in a wrong place does not
/// go unnoticed. Any bits (bool: any 0 or 1).
Buffer anyBits(DataType type, const Origin& origin, std::size_t elements);

/// The same, of numbers on which `op` is exact in `type` over up to 12 ranks in any order: any bits
/// for integers (they wrap), small whole numbers for floating types, +-1, 2 and 1/2 for products.
Buffer exactOperand(DataType type, ReduceOp op, const Origin& origin, std::size_t elements);

/// One element as a number; floating types only.
double decode(DataType type, const std::byte* from);
/// Rounds to nearest even.
void encode(DataType type, double number, std::byte* to);

/// Guarded memory: 64 bytes of 0xA5 before and after the part in use.
class GuardedBuffer {
public:
    GuardedBuffer(std::size_t bytes, std::byte fill);
    /// In memory that the caller brings (an arena), of bytes + 128.
    GuardedBuffer(std::byte* memory, std::size_t bytes, std::byte fill);
    GuardedBuffer(GuardedBuffer&&) = default;

    std::byte* data() { return base_ + kGuard; }
    std::size_t bytes() const { return bytes_; }
    bool isIntact() const;

    static constexpr std::size_t kGuard = 64;

private:
    static constexpr std::byte kMark{0xA5};
    std::size_t bytes_;
    std::vector<std::byte> own_;
    std::byte* base_ = nullptr;
};

}  // namespace isthmus::conformance
