#include "tools/cli/bench_data.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "comm/reduce/half.hpp"

namespace isthmus::cli {
namespace {

// Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014 (SplitMix64).
std::uint64_t hashOf(Rank rank, std::uint64_t index) {
    std::uint64_t mixed = (static_cast<std::uint64_t>(rank) << 48) + index;
    mixed = (mixed + 1) * 0x9E3779B97F4A7C15u;
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBu;
    return mixed ^ (mixed >> 31);
}

struct Half {
    std::uint16_t bits;
};
struct Brain {
    std::uint16_t bits;
};

// How an element is stored, in what it is computed, and the size of the random integers that keep
// sums exact: 11 bits of f16 hold sums of 128 ranks, 8 bits of bf16 those of 64.
template <typename Stored>
struct Number {
    using Value = Stored;
    static constexpr std::uint64_t kRange = 64;
    static Value load(Stored stored) { return stored; }
    static Stored store(Value value) { return value; }
    static constexpr double kEpsilon = std::is_same_v<Stored, double> ? 0x1p-52 : 0x1p-23;
};
template <>
struct Number<float> {
    using Value = double;
    static constexpr std::uint64_t kRange = 64;
    static Value load(float stored) { return stored; }
    static float store(Value value) { return static_cast<float>(value); }
    static constexpr double kEpsilon = 0x1p-23;
};
template <>
struct Number<Half> {
    using Value = double;
    static constexpr std::uint64_t kRange = 16;
    static Value load(Half stored) { return fromFloat16(stored.bits); }
    static Half store(Value value) { return {toFloat16(static_cast<float>(value))}; }
    static constexpr double kEpsilon = 0x1p-10;
};
template <>
struct Number<Brain> {
    using Value = double;
    static constexpr std::uint64_t kRange = 4;
    static Value load(Brain stored) { return fromBfloat16(stored.bits); }
    static Brain store(Value value) { return {toBfloat16(static_cast<float>(value))}; }
    static constexpr double kEpsilon = 0x1p-7;
};

template <typename Stored>
using ValueOf = typename Number<Stored>::Value;

template <typename Stored>
ValueOf<Stored> valueOf(ReduceOp op, Rank rank, std::uint64_t index) {
    const std::uint64_t hash = hashOf(rank, index);
    if constexpr (std::is_same_v<Stored, bool>) {
        return (hash & 1) != 0;
    } else if constexpr (std::is_floating_point_v<ValueOf<Stored>>) {
        if (op == ReduceOp::kProd) return (hash & 1) != 0 ? 1.0 : -1.0;
        const std::uint64_t range = Number<Stored>::kRange;
        const std::uint64_t middle = range / 2;
        return static_cast<double>(hash % range) - static_cast<double>(middle);
    } else {
        return static_cast<Stored>(hash);
    }
}

template <typename Stored>
ValueOf<Stored> combineIntegers(ReduceOp op, ValueOf<Stored> one, ValueOf<Stored> other) {
    // 64 unsigned bits, cut off at the end: what wraps around in the type wraps here.
    const auto left = static_cast<std::uint64_t>(one);
    const auto right = static_cast<std::uint64_t>(other);
    switch (op) {
    case ReduceOp::kProd:
        return static_cast<Stored>(left * right);
    case ReduceOp::kMin:
        return std::min(one, other);
    case ReduceOp::kMax:
        return std::max(one, other);
    case ReduceOp::kBand:
        return static_cast<Stored>(left & right);
    case ReduceOp::kBor:
        return static_cast<Stored>(left | right);
    case ReduceOp::kBxor:
        return static_cast<Stored>(left ^ right);
    case ReduceOp::kSum:
    case ReduceOp::kAvg:
        break;
    }
    return static_cast<Stored>(left + right);
}

double combineFloats(ReduceOp op, double one, double other) {
    if (op == ReduceOp::kProd) return one * other;
    if (op == ReduceOp::kMin) return std::min(one, other);
    if (op == ReduceOp::kMax) return std::max(one, other);
    return one + other;
}

bool combineBools(ReduceOp op, bool one, bool other) {
    if (op == ReduceOp::kBxor) return one != other;
    const bool isAnd = op == ReduceOp::kProd || op == ReduceOp::kMin || op == ReduceOp::kBand;
    return isAnd ? one && other : one || other;
}

template <typename Stored>
ValueOf<Stored> sumOf(ReduceOp op, int ranks, std::uint64_t index) {
    ValueOf<Stored> total = valueOf<Stored>(op, 0, index);
    for (Rank rank = 1; rank < ranks; ++rank) {
        const ValueOf<Stored> next = valueOf<Stored>(op, rank, index);
        if constexpr (std::is_same_v<Stored, bool>) {
            total = combineBools(op, total, next);
        } else if constexpr (std::is_floating_point_v<ValueOf<Stored>>) {
            total = combineFloats(op, total, next);
        } else {
            total = combineIntegers<Stored>(op, total, next);
        }
    }
    if constexpr (std::is_floating_point_v<ValueOf<Stored>>) {
        if (op == ReduceOp::kAvg) total /= ranks;
    }
    return total;
}

template <typename Stored>
bool isEqual(const Stored& result, ValueOf<Stored> wanted, ReduceOp op) {
    if constexpr (std::is_floating_point_v<ValueOf<Stored>>) {
        if (op == ReduceOp::kAvg) {
            const double distance = std::abs(Number<Stored>::load(result) - wanted);
            return distance <= 2 * Number<Stored>::kEpsilon * std::abs(wanted);
        }
        return Number<Stored>::load(result) == wanted;  // -0 is 0
    } else {
        return result == wanted;
    }
}

/// Calls `work` with a value of the type that `type` stores.
template <typename Work>
auto withType(DataType type, const Work& work) {
    switch (partOf(type)) {
    case DataType::kInt8:
        return work(std::int8_t{});
    case DataType::kUint8:
    case DataType::kFloat8e4m3:  // only moved
    case DataType::kFloat8e5m2:
        return work(std::uint8_t{});
    case DataType::kInt16:
        return work(std::int16_t{});
    case DataType::kUint16:
        return work(std::uint16_t{});
    case DataType::kInt32:
        return work(std::int32_t{});
    case DataType::kUint32:
        return work(std::uint32_t{});
    case DataType::kInt64:
        return work(std::int64_t{});
    case DataType::kUint64:
        return work(std::uint64_t{});
    case DataType::kFloat16:
        return work(Half{});
    case DataType::kBfloat16:
        return work(Brain{});
    case DataType::kFloat32:
        return work(float{});
    case DataType::kFloat64:
        return work(double{});
    case DataType::kBool:
    case DataType::kComplex64:  // its parts, above
    case DataType::kComplex128:
        break;
    }
    return work(bool{});
}

/// Each part of a complex number is a number here.
std::uint64_t partsOf(DataType type) {
    return bytesOf(type) / bytesOf(partOf(type));
}

template <typename Stored, typename Wanted>
std::uint64_t countWrong(const std::byte* result, std::uint64_t elements, ReduceOp op,
                         const Wanted& wanted) {
    std::uint64_t wrong = 0;
    for (std::uint64_t index = 0; index < elements; ++index) {
        const std::byte* const place = result + index * sizeof(Stored);
        if constexpr (std::is_same_v<Stored, bool>) {  // a wrong byte need not be a bool
            wrong += *place == static_cast<std::byte>(wanted(index)) ? 0 : 1;
        } else {
            Stored stored;
            std::memcpy(&stored, place, sizeof(Stored));
            wrong += isEqual<Stored>(stored, wanted(index), op) ? 0 : 1;
        }
    }
    return wrong;
}

}  // namespace

void fillOperand(std::byte* target, std::uint64_t elements, DataType type, ReduceOp op, Rank rank,
                 std::uint64_t first) {
    elements *= partsOf(type);
    first *= partsOf(type);
    withType(type, [&](auto sample) {
        using Stored = decltype(sample);
        for (std::uint64_t index = 0; index < elements; ++index) {
            const Stored stored = Number<Stored>::store(valueOf<Stored>(op, rank, first + index));
            std::memcpy(target + index * sizeof(Stored), &stored, sizeof(Stored));
        }
    });
}

std::uint64_t wrongCopies(const std::byte* result, std::uint64_t elements, DataType type,
                          ReduceOp op, Rank source, std::uint64_t first) {
    elements *= partsOf(type);
    first *= partsOf(type);
    return withType(type, [&](auto sample) {
        using Stored = decltype(sample);
        return countWrong<Stored>(result, elements, op, [&](std::uint64_t index) {
            return valueOf<Stored>(op, source, first + index);
        });
    });
}

std::uint64_t wrongSums(const std::byte* result, std::uint64_t elements, DataType type, ReduceOp op,
                        int ranks, std::uint64_t first) {
    elements *= partsOf(type);
    first *= partsOf(type);
    return withType(type, [&](auto sample) {
        using Stored = decltype(sample);
        return countWrong<Stored>(result, elements, op, [&](std::uint64_t index) {
            return sumOf<Stored>(op, ranks, first + index);
        });
    });
}

}  // namespace isthmus::cli
