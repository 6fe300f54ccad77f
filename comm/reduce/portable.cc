#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "comm/reduce/half.hpp"
#include "comm/reduce/job.hpp"

namespace isthmus::reduction::portable {

namespace {

// Elements a time: their partial results stay in the first-level cache, and the loops are long
// enough to be vectorised.
constexpr std::size_t kBlock = 256;

template <typename T>
struct Plain {
    using Stored = T;
    using Value = T;
    static Value read(Stored stored) { return stored; }
    static Stored write(Value value) { return value; }
};

struct Float16 {
    using Stored = std::uint16_t;
    using Value = float;
    static Value read(Stored stored) { return fromFloat16(stored); }
    static Stored write(Value value) { return toFloat16(value); }
};

struct Bfloat16 {
    using Stored = std::uint16_t;
    using Value = float;
    static Value read(Stored stored) { return fromBfloat16(stored); }
    static Stored write(Value value) { return toBfloat16(value); }
};

/// memcpy: pointers of users need no alignment.
template <typename Format>
typename Format::Value readAt(const std::byte* from, std::size_t position) {
    typename Format::Stored stored;
    std::memcpy(&stored, from + position * sizeof stored, sizeof stored);
    return Format::read(stored);
}

template <typename Format, typename Op>
void run(const Job& job, Op op) {
    using Value = typename Format::Value;
    using Stored = typename Format::Stored;
    const std::size_t elements = job.bytes / sizeof(Stored);
    Value sums[kBlock];
    Stored results[kBlock];
    for (std::size_t at = 0; at < elements; at += kBlock) {
        const std::size_t count = std::min(kBlock, elements - at);
        const std::size_t offset = at * sizeof(Stored);
        for (std::size_t i = 0; i < count; ++i) sums[i] = readAt<Format>(job.source(0) + offset, i);
        for (std::size_t s = 1; s < job.sourceCount; ++s) {
            const std::byte* const from = job.source(s) + offset;
            for (std::size_t i = 0; i < count; ++i) sums[i] = op(sums[i], readAt<Format>(from, i));
        }
        for (std::size_t i = 0; i < count; ++i) {
            if constexpr (std::is_floating_point_v<Value>) sums[i] *= static_cast<Value>(job.scale);
            results[i] = Format::write(sums[i]);
        }
        for (std::size_t t = 0; t < job.targetCount; ++t) {
            std::memcpy(job.target(t) + offset, results, count * sizeof(Stored));
        }
    }
}

// 1u: 16-bit numbers are promoted to int, whose product may overflow.
constexpr auto kAdd = [](auto left, auto right) {
    return static_cast<decltype(left)>(left + right);
};
constexpr auto kMultiply = [](auto left, auto right) {
    if constexpr (std::is_integral_v<decltype(left)>) {
        return static_cast<decltype(left)>(1u * left * right);
    } else {
        return left * right;
    }
};

/// See Extreme in extreme.cc: the order of the sources does not matter.
template <bool kMaximum, typename T>
T extremeOf(T left, T right) {
    const bool takesLeft = kMaximum ? left > right : left < right;
    if constexpr (std::is_floating_point_v<T>) {
        using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
        const Bits a = std::bit_cast<Bits>(left);
        const Bits b = std::bit_cast<Bits>(right);
        const T equal = std::bit_cast<T>(kMaximum ? a & b : a | b);
        const T number = left == right ? equal : takesLeft ? left : right;
        return std::isnan(left) || std::isnan(right) ? std::numeric_limits<T>::quiet_NaN() : number;
    } else {
        return takesLeft ? left : right;
    }
}

constexpr auto kLeast = [](auto left, auto right) { return extremeOf<false>(left, right); };
constexpr auto kGreatest = [](auto left, auto right) { return extremeOf<true>(left, right); };

template <typename Op>
void runFloatingOrUnsigned(DataType type, const Job& job, Op op) {
    switch (type) {
    case DataType::kFloat16:
        return run<Float16>(job, op);
    case DataType::kBfloat16:
        return run<Bfloat16>(job, op);
    case DataType::kFloat32:
        return run<Plain<float>>(job, op);
    case DataType::kFloat64:
        return run<Plain<double>>(job, op);
    case DataType::kUint8:
        return run<Plain<std::uint8_t>>(job, op);
    case DataType::kUint16:
        return run<Plain<std::uint16_t>>(job, op);
    case DataType::kUint32:
        return run<Plain<std::uint32_t>>(job, op);
    default:
        return run<Plain<std::uint64_t>>(job, op);
    }
}

template <typename Op>
void runAny(DataType type, const Job& job, Op op) {
    switch (type) {
    case DataType::kInt8:
        return run<Plain<std::int8_t>>(job, op);
    case DataType::kInt16:
        return run<Plain<std::int16_t>>(job, op);
    case DataType::kInt32:
        return run<Plain<std::int32_t>>(job, op);
    case DataType::kInt64:
        return run<Plain<std::int64_t>>(job, op);
    default:
        return runFloatingOrUnsigned(type, job, op);
    }
}

/// A bool as stored; as a value, 0 or 1.
struct Truth {
    using Stored = std::uint8_t;
    using Value = std::uint8_t;
    static Value read(Stored stored) { return stored != 0 ? 1 : 0; }
    static Stored write(Value value) { return value; }
};

template <typename Format>
void runBitsOf(BitOp op, const Job& job) {
    using Byte = std::uint8_t;
    switch (op) {
    case BitOp::kAnd:
    case BitOp::kBoolAnd:
        return run<Format>(job, [](Byte a, Byte b) { return static_cast<Byte>(a & b); });
    case BitOp::kOr:
    case BitOp::kBoolOr:
        return run<Format>(job, [](Byte a, Byte b) { return static_cast<Byte>(a | b); });
    case BitOp::kXor:
    case BitOp::kBoolXor:
        return run<Format>(job, [](Byte a, Byte b) { return static_cast<Byte>(a ^ b); });
    }
}

}  // namespace

void runSum(DataType type, const Job& job) {
    runFloatingOrUnsigned(type, job, kAdd);
}

void runProduct(DataType type, const Job& job) {
    runFloatingOrUnsigned(type, job, kMultiply);
}

void runExtreme(DataType type, bool wantsMaximum, const Job& job) {
    if (wantsMaximum) return runAny(type, job, kGreatest);
    runAny(type, job, kLeast);
}

void runBits(BitOp op, const Job& job) {
    if (op == BitOp::kBoolAnd || op == BitOp::kBoolOr || op == BitOp::kBoolXor) {
        return runBitsOf<Truth>(op, job);
    }
    runBitsOf<Plain<std::uint8_t>>(op, job);
}

}  // namespace isthmus::reduction::portable
