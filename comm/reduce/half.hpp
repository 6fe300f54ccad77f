#pragma once

#include <bit>
#include <cstdint>

namespace isthmus {

// f16 and bf16 as the wire and torch have them, to and from f32. Integer arithmetic only (except
// one exact addition), no branches that a compiler could not turn into selects: loops over these
// become vector code. To 16 bits: nearest, ties to even; NaN stays NaN (quiet); overflow is
// infinity.

inline float fromBfloat16(std::uint16_t bits) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

inline std::uint16_t toBfloat16(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const bool isNan = (bits & 0x7FFFFFFFu) > 0x7F800000u;
    const std::uint32_t rounded = bits + 0x7FFFu + ((bits >> 16) & 1u);
    return static_cast<std::uint16_t>((isNan ? (bits | 0x00400000u) : rounded) >> 16);
}

inline float fromFloat16(std::uint16_t bits) {
    const std::uint32_t sign = (bits & 0x8000u) << 16;
    const std::uint32_t magnitude = bits & 0x7FFFu;
    // Normal numbers and above: move the exponent's bias from 15 to 127, or to "all ones".
    const std::uint32_t bias = magnitude >= 0x7C00u ? 224u << 23 : 112u << 23;
    const std::uint32_t normal = (magnitude << 13) + bias;
    // Subnormals: m * 2^-24, exactly, as the distance of two floats whose last bit weighs 2^-24.
    constexpr std::uint32_t kHalf = 0x3F000000u;  // 0.5f
    const float tiny = std::bit_cast<float>(kHalf | magnitude) - 0.5f;
    const std::uint32_t result = magnitude < 0x0400u ? std::bit_cast<std::uint32_t>(tiny) : normal;
    return std::bit_cast<float>(sign | result);
}

inline std::uint16_t toFloat16(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (bits >> 16) & 0x8000u;
    const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
    const std::uint32_t normal =
        (magnitude - (112u << 23) + 0x0FFFu + ((magnitude >> 13) & 1u)) >> 13;
    // Below 2^-14: adding 0.5f lets the addition itself round at 2^-24.
    const std::uint32_t tiny =
        std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3F000000u;
    const std::uint32_t finite = magnitude < 0x38800000u ? tiny : normal;
    const std::uint32_t special = magnitude > 0x7F800000u ? 0x7E00u : 0x7C00u;
    const std::uint32_t result = magnitude >= 0x47800000u ? special : finite;
    return static_cast<std::uint16_t>(sign | result);
}

}  // namespace isthmus
