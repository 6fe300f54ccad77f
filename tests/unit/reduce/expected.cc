#include "tests/unit/reduce/expected.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace isthmus::test {

namespace {

template <typename T>
T readAs(const std::byte* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

bool isSigned(DataType type) {
    return type == DataType::kInt8 || type == DataType::kInt16 || type == DataType::kInt32 ||
           type == DataType::kInt64;
}

/// Zero- or sign-extended to 64 bits.
std::uint64_t readInteger(DataType type, const std::byte* from) {
    std::uint64_t value = 0;
    const std::size_t bytes = bytesOf(type);
    for (std::size_t i = 0; i < bytes; ++i) value |= std::uint64_t(from[i]) << (8 * i);
    if (isSigned(type) && bytes < 8 && (value >> (8 * bytes - 1)) != 0)
        value |= ~0ull << (8 * bytes);
    return value;
}

std::uint64_t combineIntegers(DataType type, ReduceOp op, std::uint64_t a, std::uint64_t b) {
    const bool less =
        isSigned(type) ? static_cast<std::int64_t>(a) < static_cast<std::int64_t>(b) : a < b;
    switch (op) {
    case ReduceOp::kProd:
        return a * b;
    case ReduceOp::kMin:
        return less ? a : b;
    case ReduceOp::kMax:
        return less ? b : a;
    case ReduceOp::kBand:
        return a & b;
    case ReduceOp::kBor:
        return a | b;
    case ReduceOp::kBxor:
        return a ^ b;
    default:
        return a + b;
    }
}

bool combineBools(ReduceOp op, bool a, bool b) {
    if (op == ReduceOp::kBxor) return a != b;
    const bool all = op == ReduceOp::kProd || op == ReduceOp::kMin || op == ReduceOp::kBand;
    return all ? a && b : a || b;
}

template <typename T>
T combineFloating(ReduceOp op, T a, T b) {
    if (op == ReduceOp::kProd) return a * b;
    if (op != ReduceOp::kMin && op != ReduceOp::kMax) return a + b;
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
    if (a == b) return std::signbit(a) == (op == ReduceOp::kMin) ? a : b;
    return (a < b) == (op == ReduceOp::kMin) ? a : b;
}

float readSingle(DataType type, const std::byte* from) {
    if (type == DataType::kFloat32) return readAs<float>(from);
    return static_cast<float>(decodeSmall(type, readAs<std::uint16_t>(from)));
}

void writeFloating(DataType type, double value, std::byte* to) {
    const float single = static_cast<float>(value);
    if (type == DataType::kFloat64) {
        std::memcpy(to, &value, sizeof value);
    } else if (type == DataType::kFloat32) {
        std::memcpy(to, &single, sizeof single);
    } else {
        const std::uint16_t bits = encodeSmall(type, value);
        std::memcpy(to, &bits, sizeof bits);
    }
}

template <typename T, typename Read>
T foldFloating(ReduceOp op, const std::vector<Buffer>& sources, std::size_t at, double scale,
               Read read) {
    T sum = read(sources[0].data() + at);
    for (std::size_t s = 1; s < sources.size(); ++s) {
        sum = combineFloating<T>(op, sum, read(sources[s].data() + at));
    }
    return sum * static_cast<T>(scale);
}

void expectedElement(DataType type, ReduceOp op, const std::vector<Buffer>& sources, std::size_t at,
                     double scale, std::byte* to) {
    if (type == DataType::kFloat64) {
        const auto read = [](const std::byte* from) { return readAs<double>(from); };
        writeFloating(type, foldFloating<double>(op, sources, at, scale, read), to);
    } else if (isFloating(type)) {
        const auto read = [type](const std::byte* from) { return readSingle(type, from); };
        writeFloating(type, foldFloating<float>(op, sources, at, scale, read), to);
    } else if (type == DataType::kBool) {
        bool value = sources[0][at] != std::byte(0);
        for (std::size_t s = 1; s < sources.size(); ++s) {
            value = combineBools(op, value, sources[s][at] != std::byte(0));
        }
        *to = std::byte(value ? 1 : 0);
    } else {
        std::uint64_t value = readInteger(type, sources[0].data() + at);
        for (std::size_t s = 1; s < sources.size(); ++s) {
            value = combineIntegers(type, op, value, readInteger(type, sources[s].data() + at));
        }
        for (std::size_t i = 0; i < bytesOf(type); ++i) to[i] = std::byte(value >> (8 * i));
    }
}

struct Format {
    int fraction;
    int leastExponent;
    int greatestExponent;
};

Format formatOf(DataType type) {
    return type == DataType::kFloat16 ? Format{10, -14, 15} : Format{7, -126, 127};
}

}  // namespace

double decodeSmall(DataType type, std::uint16_t bits) {
    const Format format = formatOf(type);
    const int exponent = (bits & 0x7FFF) >> format.fraction;
    const int fraction = bits & ((1 << format.fraction) - 1);
    const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
    if (exponent == 2 * format.greatestExponent + 1) {
        return fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                             : sign * std::numeric_limits<double>::infinity();
    }
    if (exponent == 0) return sign * std::ldexp(fraction, format.leastExponent - format.fraction);
    return sign * std::ldexp((1 << format.fraction) + fraction,
                             exponent - format.greatestExponent - format.fraction);
}

std::uint16_t encodeSmall(DataType type, double value) {
    const Format format = formatOf(type);
    const int sign = std::signbit(value) ? 0x8000 : 0;
    const int infinity = (2 * format.greatestExponent + 1) << format.fraction;
    if (std::isnan(value)) return static_cast<std::uint16_t>(infinity | 1 << (format.fraction - 1));
    const double magnitude = std::fabs(value);
    const int exponent = magnitude == 0 ? format.leastExponent
                                        : std::max(std::ilogb(magnitude), format.leastExponent);
    if (exponent > format.greatestExponent) return static_cast<std::uint16_t>(sign | infinity);
    // In units of the last place; nearbyint rounds ties to even.
    const int units =
        static_cast<int>(std::nearbyint(std::ldexp(magnitude, format.fraction - exponent)));
    // Adding, not or-ing: 2 * 2^fraction units carry into the exponent, up to infinity.
    const int biased = (exponent - format.leastExponent) << format.fraction;
    return static_cast<std::uint16_t>(sign | (biased + units));
}

bool sameElement(DataType type, const std::byte* left, const std::byte* right) {
    if (std::memcmp(left, right, bytesOf(type)) == 0) return true;
    if (isComplex(type)) {
        const DataType part = partOf(type);
        return sameElement(part, left, right) &&
               sameElement(part, left + bytesOf(part), right + bytesOf(part));
    }
    if (!isFloating(type)) return false;
    if (type == DataType::kFloat64) {
        return std::isnan(readAs<double>(left)) && std::isnan(readAs<double>(right));
    }
    return std::isnan(readSingle(type, left)) && std::isnan(readSingle(type, right));
}

Buffer expectedResult(DataType type, ReduceOp op, const std::vector<Buffer>& sources,
                      std::size_t elements, double scale) {
    // Sums of complex numbers are those of their parts, by definition.
    if (isComplex(type)) return expectedResult(partOf(type), op, sources, 2 * elements, scale);
    const std::size_t width = bytesOf(type);
    Buffer result(elements * width);
    for (std::size_t i = 0; i < elements; ++i) {
        expectedElement(type, op, sources, i * width, scale, result.data() + i * width);
    }
    return result;
}

}  // namespace isthmus::test
