#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <isthmus/status.hpp>

namespace isthmus::scheduler {

/// A way of splitting a job over ranks. The order is Megatron's `tp-cp-ep-dp-pp`: ranks are
/// numbered with tensor fastest and pipe slowest (Megatron-LM, parallel_state.py).
enum class Axis : std::uint8_t { kTensor, kContext, kExpert, kData, kPipe };

inline constexpr std::array kAxes = {Axis::kTensor, Axis::kContext, Axis::kExpert, Axis::kData,
                                     Axis::kPipe};

/// One value an axis.
template <typename T>
class PerAxis {
public:
    constexpr PerAxis() = default;
    constexpr explicit PerAxis(T everywhere) { values_.fill(everywhere); }

    constexpr T& operator[](Axis axis) { return values_[static_cast<std::size_t>(axis)]; }
    constexpr const T& operator[](Axis axis) const {
        return values_[static_cast<std::size_t>(axis)];
    }
    friend bool operator==(const PerAxis&, const PerAxis&) = default;

private:
    std::array<T, kAxes.size()> values_{};
};

/// How many ways each axis splits: at least 1.
using Degrees = PerAxis<int>;

/// What one rank sends on each axis in one step, in bytes: on tensor, data and context round a flat
/// ring of its group, on pipe to each neighbour of its chain, on expert in all to the others.
using AxisBytes = PerAxis<std::int64_t>;

std::string_view nameOf(Axis axis);
/// Also by the two letters that Megatron uses: tp, cp, ep, dp, pp.
Result<Axis> axisNamed(std::string_view name);

/// The product of the degrees.
std::int64_t ranksOf(const Degrees& degrees);

/// "tensor 2, data 2, pipe 2"; axes of degree 1 are left out.
std::string textOf(const Degrees& degrees);

}  // namespace isthmus::scheduler
