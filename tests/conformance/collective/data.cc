#include "tests/conformance/collective/data.hpp"

#include <algorithm>
#include <cstring>

namespace isthmus::conformance {

namespace {

// The finalizer of splitmix64 (Steele, Lea and Flood, doi 10.1145/2660193.2660195): every bit of
// the input reaches every bit of the output.
std::uint64_t mix(std::uint64_t value) {
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
    return value ^ (value >> 31);
}

std::uint64_t seedOf(const Origin& origin) {
    return mix(mix(origin.seed * 1009 + origin.block + 1) +
               static_cast<std::uint64_t>(origin.rank));
}

// Sums of 12 such numbers are whole numbers that the type holds: its fraction has 52, 23, 10 or 7
// bits.
std::int64_t mostOf(DataType type) {
    if (type == DataType::kFloat64) return std::int64_t{1} << 40;
    if (type == DataType::kFloat32) return std::int64_t{1} << 19;
    return type == DataType::kFloat16 ? 170 : 21;
}

double numberOf(DataType type, ReduceOp op, std::uint64_t bits) {
    if (op == ReduceOp::kProd) {
        constexpr double kFactors[] = {1.0, -1.0, 2.0, 0.5};
        return kFactors[bits % 4];
    }
    const std::int64_t most = mostOf(type);
    return static_cast<double>(static_cast<std::int64_t>(bits >> 2) % (2 * most + 1) - most);
}

}  // namespace

void encode(DataType type, double number, std::byte* to) {
    if (type == DataType::kFloat64) {
        std::memcpy(to, &number, sizeof number);
    } else if (type == DataType::kFloat32) {
        const auto single = static_cast<float>(number);
        std::memcpy(to, &single, sizeof single);
    } else {
        const std::uint16_t small = test::encodeSmall(type, number);
        std::memcpy(to, &small, sizeof small);
    }
}

double decode(DataType type, const std::byte* from) {
    if (type == DataType::kFloat64) {
        double number = 0;
        std::memcpy(&number, from, sizeof number);
        return number;
    }
    if (type == DataType::kFloat32) {
        float single = 0;
        std::memcpy(&single, from, sizeof single);
        return single;
    }
    std::uint16_t small = 0;
    std::memcpy(&small, from, sizeof small);
    return test::decodeSmall(type, small);
}

Buffer anyBits(DataType type, const Origin& origin, std::size_t elements) {
    if (isComplex(type)) return anyBits(partOf(type), origin, 2 * elements);
    const std::size_t width = bytesOf(type);
    const std::uint64_t seed = seedOf(origin);
    Buffer buffer(elements * width);
    for (std::size_t i = 0; i < elements; ++i) {
        std::uint64_t bits = mix(seed + i);
        if (type == DataType::kBool) bits = bits % 4 == 0 ? 0 : 1;
        std::memcpy(buffer.data() + i * width, &bits, width);
    }
    return buffer;
}

Buffer exactOperand(DataType type, ReduceOp op, const Origin& origin, std::size_t elements) {
    if (isComplex(type)) return exactOperand(partOf(type), op, origin, 2 * elements);
    if (!isFloating(type)) return anyBits(type, origin, elements);
    const std::size_t width = bytesOf(type);
    const std::uint64_t seed = seedOf(origin);
    Buffer buffer(elements * width);
    for (std::size_t i = 0; i < elements; ++i) {
        encode(type, numberOf(type, op, mix(seed + i)), buffer.data() + i * width);
    }
    return buffer;
}

GuardedBuffer::GuardedBuffer(std::size_t bytes, std::byte fill)
    : bytes_(bytes), own_(bytes + 2 * kGuard, kMark), base_(own_.data()) {
    std::fill_n(data(), bytes, fill);
}

GuardedBuffer::GuardedBuffer(std::byte* memory, std::size_t bytes, std::byte fill)
    : bytes_(bytes), base_(memory) {
    std::fill_n(base_, bytes + 2 * kGuard, kMark);
    std::fill_n(data(), bytes, fill);
}

bool GuardedBuffer::isIntact() const {
    for (std::size_t i = 0; i < kGuard; ++i) {
        if (base_[i] != kMark || base_[kGuard + bytes_ + i] != kMark) return false;
    }
    return true;
}

}  // namespace isthmus::conformance
