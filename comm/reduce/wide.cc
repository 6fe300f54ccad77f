#include "comm/reduce/wide.hpp"

#include <cstring>

#include "comm/base/assert.hpp"
#include "comm/reduce/half.hpp"

namespace isthmus {

namespace {

// Buffers of callers need no alignment; a copy of two bytes is a load to the compiler.
std::uint16_t bitsAt(const void* place, std::size_t index) {
    std::uint16_t bits;
    std::memcpy(&bits, static_cast<const std::byte*>(place) + 2 * index, sizeof bits);
    return bits;
}

template <float (*kFrom)(std::uint16_t)>
void widenAll(const void* from, float* to, std::size_t elements, float scale) {
    for (std::size_t i = 0; i < elements; ++i) to[i] = kFrom(bitsAt(from, i)) * scale;
}

template <std::uint16_t (*kTo)(float)>
void narrowAll(const float* from, void* to, std::size_t elements) {
    for (std::size_t i = 0; i < elements; ++i) {
        const std::uint16_t bits = kTo(from[i]);
        std::memcpy(static_cast<std::byte*>(to) + 2 * i, &bits, sizeof bits);
    }
}

}  // namespace

void widen(DataType type, const void* from, float* to, std::size_t elements, double scale) {
    ISTHMUS_ASSERT(type == DataType::kFloat16 || type == DataType::kBfloat16);
    const auto factor = static_cast<float>(scale);
    type == DataType::kFloat16 ? widenAll<fromFloat16>(from, to, elements, factor)
                               : widenAll<fromBfloat16>(from, to, elements, factor);
}

void narrow(DataType type, const float* from, void* to, std::size_t elements) {
    ISTHMUS_ASSERT(type == DataType::kFloat16 || type == DataType::kBfloat16);
    type == DataType::kFloat16 ? narrowAll<toFloat16>(from, to, elements)
                               : narrowAll<toBfloat16>(from, to, elements);
}

}  // namespace isthmus
