#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <isthmus/types.hpp>

namespace isthmus::test {

using Buffer = std::vector<std::byte>;

/// What reduce() must write, computed element by element in plain arithmetic that shares nothing
/// with the library: integers in 64 bits cut to width, 16-bit floating types by the definition of
/// their format in double.
Buffer expectedResult(DataType type, ReduceOp op, const std::vector<Buffer>& sources,
                      std::size_t elements, double scale);

/// IEEE binary16 (10 bits of fraction, least exponent -14) or bfloat16 (7, -126).
double decodeSmall(DataType type, std::uint16_t bits);
std::uint16_t encodeSmall(DataType type, double value);

/// True when the bytes are equal, or both are NaN of a floating type.
bool sameElement(DataType type, const std::byte* left, const std::byte* right);

}  // namespace isthmus::test
