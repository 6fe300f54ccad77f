#include "comm/reduce/simd_targets.hpp"

#include <hwy/highway.h>

#include <array>
#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <random>
#include <span>
#include <string>

#include <gtest/gtest.h>

#include "comm/reduce/half.hpp"
#include "comm/reduce/reducer.hpp"
#include "tests/unit/reduce/expected.hpp"

namespace isthmus::test {
namespace {

// Vector blocks, single vectors and tails of every instruction set.
constexpr std::size_t kSizes[] = {1, 7, 8, 9, 63, 65, 129, 1031};

/// Runs each test on every instruction set of this processor, and without any (0).
class ReducerTest : public testing::TestWithParam<std::int64_t> {
protected:
    void SetUp() override { hwy::GetChosenTarget().Update(GetParam()); }
    void TearDown() override { hwy::GetChosenTarget().DeInit(); }
};

std::vector<std::int64_t> instructionSets() {
    std::vector<std::int64_t> sets = hwy::SupportedAndGeneratedTargets();
    std::erase(sets, HWY_SCALAR);
    std::erase(sets, HWY_EMU128);
    sets.push_back(0);
    return sets;
}

INSTANTIATE_TEST_SUITE_P(Set, ReducerTest, testing::ValuesIn(instructionSets()),
                         [](const auto& set) {
                             return set.param == 0 ? std::string("Portable")
                                                   : std::string(hwy::TargetName(set.param));
                         });

/// Any bits for integers and bools; for floating types finite numbers whose sums and products need
/// rounding.
Buffer randomBuffer(DataType type, std::size_t elements, std::mt19937_64& random) {
    if (isComplex(type)) return randomBuffer(partOf(type), 2 * elements, random);
    Buffer buffer(elements * bytesOf(type));
    std::uniform_real_distribution<double> numbers(-4.0, 4.0);
    for (std::size_t i = 0; i < elements; ++i) {
        std::byte* const at = buffer.data() + i * bytesOf(type);
        const std::uint64_t bits = random();
        const double number = numbers(random);
        const float single = static_cast<float>(number);
        if (type == DataType::kBool) {
            at[0] = std::byte(bits % 3 == 0 ? 0 : bits >> 8);
        } else if (type == DataType::kFloat64) {
            std::memcpy(at, &number, 8);
        } else if (type == DataType::kFloat32) {
            std::memcpy(at, &single, 4);
        } else if (isFloating(type)) {
            const std::uint16_t small = encodeSmall(type, number);
            std::memcpy(at, &small, 2);
        } else {
            std::memcpy(at, &bits, bytesOf(type));
        }
    }
    return buffer;
}

std::vector<Buffer> randomSources(DataType type, std::size_t elements, std::size_t count) {
    std::mt19937_64 random(elements * 31 + count);
    std::vector<Buffer> sources;
    for (std::size_t s = 0; s < count; ++s) sources.push_back(randomBuffer(type, elements, random));
    return sources;
}

std::vector<const void*> pointersTo(const std::vector<Buffer>& buffers) {
    std::vector<const void*> pointers;
    for (const Buffer& buffer : buffers) pointers.push_back(buffer.data());
    return pointers;
}

/// Index of the first element that differs, or -1.
long firstDifference(DataType type, const std::byte* left, const std::byte* right,
                     std::size_t elements) {
    for (std::size_t i = 0; i < elements; ++i) {
        const std::size_t at = i * bytesOf(type);
        if (!sameElement(type, left + at, right + at)) return static_cast<long>(i);
    }
    return -1;
}

std::string nameOfCase(DataType type, ReduceOp op, std::size_t sources, std::size_t elements) {
    return std::string(nameOf(type)) + " " + std::string(nameOf(op)) + " of " +
           std::to_string(sources) + " x " + std::to_string(elements);
}

template <typename Check>
void forEveryTypeAndOp(Check check) {
    for (int type = 0; type < kDataTypes; ++type) {
        for (int op = 0; op < kReduceOps; ++op) {
            if (!isReducible(DataType(type), ReduceOp(op))) continue;
            check(DataType(type), ReduceOp(op));
        }
    }
}

TEST(IsReducible, FollowsTheTypeFamilies) {
    EXPECT_TRUE(isReducible(DataType::kBfloat16, ReduceOp::kAvg));
    EXPECT_FALSE(isReducible(DataType::kInt32, ReduceOp::kAvg));  // NUM-08
    EXPECT_FALSE(isReducible(DataType::kBool, ReduceOp::kAvg));
    EXPECT_FALSE(isReducible(DataType::kFloat32, ReduceOp::kBxor));
    EXPECT_TRUE(isReducible(DataType::kUint8, ReduceOp::kBand));
    EXPECT_TRUE(isReducible(DataType::kBool, ReduceOp::kSum));
    for (int op = 0; op < kReduceOps; ++op) {  // NUM-14
        const bool adds = ReduceOp(op) == ReduceOp::kSum || ReduceOp(op) == ReduceOp::kAvg;
        EXPECT_EQ(isReducible(DataType::kComplex64, ReduceOp(op)), adds);
        EXPECT_EQ(isReducible(DataType::kComplex128, ReduceOp(op)), adds);
        EXPECT_FALSE(isReducible(DataType::kFloat8e4m3, ReduceOp(op)));
        EXPECT_FALSE(isReducible(DataType::kFloat8e5m2, ReduceOp(op)));
    }
}

TEST_P(ReducerTest, AddsAndAveragesComplexNumbersByParts) {  // NUM-14
    using Number = std::complex<double>;
    const std::vector<Number> one(9, Number(1, -2));
    const std::vector<Number> other(9, Number(0.5, 7));
    const void* const sources[] = {one.data(), other.data()};
    std::vector<Number> target(9);
    reduce(DataType::kComplex128, ReduceOp::kSum, target.data(), sources, 9);
    EXPECT_EQ(target, std::vector<Number>(9, Number(1.5, 5)));
    reduce(DataType::kComplex128, ReduceOp::kAvg, target.data(), sources, 9, 0.5);
    EXPECT_EQ(target, std::vector<Number>(9, Number(0.75, 2.5)));
}

TEST_P(ReducerTest, EqualsPlainArithmeticForEveryTypeOpSizeAndNumberOfSources) {
    forEveryTypeAndOp([](DataType type, ReduceOp op) {
        for (const std::size_t count : {1u, 2u, 3u, 4u, 5u, 9u}) {
            for (const std::size_t elements : kSizes) {
                const auto sources = randomSources(type, elements, count);
                Buffer target(elements * bytesOf(type) + 1, std::byte(0xA5));
                reduce(type, op, target.data(), pointersTo(sources), elements);
                const Buffer expected = expectedResult(type, op, sources, elements, 1.0);
                EXPECT_EQ(firstDifference(type, target.data(), expected.data(), elements), -1)
                    << nameOfCase(type, op, count, elements);
                EXPECT_EQ(target.back(), std::byte(0xA5)) << "wrote behind the end";
            }
        }
    });
}

TEST_P(ReducerTest, TakesPointersOfAnyAlignmentAndScales) {
    forEveryTypeAndOp([](DataType type, ReduceOp op) {
        constexpr std::size_t kElements = 333;
        const auto sources = randomSources(type, kElements, 3);
        const Buffer expected = expectedResult(type, op, sources, kElements, 0.3);
        for (std::size_t shift = 1; shift < 8; shift += 2) {
            std::vector<Buffer> shifted(3, Buffer(shift));
            std::vector<const void*> pointers;
            for (std::size_t s = 0; s < 3; ++s) {
                shifted[s].insert(shifted[s].end(), sources[s].begin(), sources[s].end());
                pointers.push_back(shifted[s].data() + shift);
            }
            Buffer target(expected.size() + 16);
            reduce(type, op, target.data() + 16 - shift, pointers, kElements, 0.3);
            EXPECT_EQ(firstDifference(type, target.data() + 16 - shift, expected.data(), kElements),
                      -1)
                << nameOfCase(type, op, 3, kElements) << " shifted by " << shift;
        }
    });
}

TEST_P(ReducerTest, ReducesInPlaceOntoAnySource) {
    forEveryTypeAndOp([](DataType type, ReduceOp op) {
        for (std::size_t position = 0; position < 3; ++position) {
            auto sources = randomSources(type, 1031, 3);
            const Buffer expected = expectedResult(type, op, sources, 1031, 1.0);
            reduce(type, op, sources[position].data(), pointersTo(sources), 1031);
            EXPECT_EQ(firstDifference(type, sources[position].data(), expected.data(), 1031), -1)
                << nameOfCase(type, op, 3, 1031) << " in place of " << position;
        }
    });
}

TEST_P(ReducerTest, WritesEveryTargetStreamingOrNot) {
    for (const DataType type : {DataType::kFloat32, DataType::kBfloat16, DataType::kFloat16,
                                DataType::kUint8, DataType::kBool, DataType::kFloat64}) {
        for (const std::size_t count : {1u, 2u, 4u, 7u}) {
            for (const bool streaming : {false, true}) {
                constexpr std::size_t kElements = 4097;
                auto sources = randomSources(type, kElements, count);
                const Buffer expected =
                    expectedResult(type, ReduceOp::kSum, sources, kElements, 1.0);
                Buffer second(expected.size() + 3);
                void* const targets[] = {sources[count - 1].data(), second.data() + 3};
                reduceToMany(type, ReduceOp::kSum, targets, pointersTo(sources), kElements, 1.0,
                             streaming);
                for (void* target : targets) {
                    const auto* bytes = static_cast<const std::byte*>(target);
                    EXPECT_EQ(firstDifference(type, bytes, expected.data(), kElements), -1)
                        << nameOfCase(type, ReduceOp::kSum, count, kElements) << streaming;
                }
            }
        }
    }
}

// https://github.com/ml-explore/mlx/issues/4072
TEST_P(ReducerTest, Num10MinAndMaxAreNanWhereverAndInWhicheverSourceItIs) {
    const std::uint16_t kNans16[] = {0x7E00, 0xFE01, 0x7D01};  // bf16 reads these as numbers
    for (const std::size_t elements : {1u, 7u, 8u, 9u, 63u, 65u, 4097u}) {
        for (const std::size_t where : {std::size_t(0), elements / 2, elements - 1}) {
            for (std::size_t source = 0; source < 4; ++source) {
                for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax}) {
                    std::vector<std::vector<float>> sources(4, std::vector<float>(elements, 3.0f));
                    sources[source][where] = std::bit_cast<float>(0xFF800001u);  // signalling
                    std::vector<float> target(elements);
                    const void* const pointers[] = {sources[0].data(), sources[1].data(),
                                                    sources[2].data(), sources[3].data()};
                    reduce(DataType::kFloat32, op, target.data(), pointers, elements);
                    for (std::size_t i = 0; i < elements; ++i) {
                        ASSERT_EQ(std::isnan(target[i]), i == where) << elements << " " << source;
                    }
                    std::vector<std::vector<std::uint16_t>> halves(
                        4, std::vector<std::uint16_t>(elements, 0x3C00));
                    halves[source][where] = kNans16[source % 3];
                    std::vector<std::uint16_t> half(elements);
                    const void* const halfPointers[] = {halves[0].data(), halves[1].data(),
                                                        halves[2].data(), halves[3].data()};
                    reduce(DataType::kFloat16, op, half.data(), halfPointers, elements);
                    for (std::size_t i = 0; i < elements; ++i) {
                        ASSERT_EQ((half[i] & 0x7FFF) > 0x7C00, i == where);
                    }
                }
            }
        }
    }
}

/// Tells -0 from 0.
std::vector<std::uint64_t> bitsOf(std::span<const double> numbers) {
    std::vector<std::uint64_t> bits;
    for (const double number : numbers) bits.push_back(std::bit_cast<std::uint64_t>(number));
    return bits;
}

TEST_P(ReducerTest, Num10InfinitiesAndSignsOfZeroDoNotDependOnTheOrder) {
    const double infinity = HUGE_VAL;
    const double first[] = {infinity, -infinity, -0.0, 0.0, infinity};
    const double second[] = {1.0, 1.0, 0.0, -0.0, -infinity};
    const double least[] = {1.0, -infinity, -0.0, -0.0, -infinity};
    const double greatest[] = {infinity, 1.0, 0.0, 0.0, infinity};
    double result[5];
    for (const auto& sources :
         {std::array<const void*, 2>{first, second}, std::array<const void*, 2>{second, first}}) {
        reduce(DataType::kFloat64, ReduceOp::kMin, result, sources, 5);
        EXPECT_EQ(bitsOf(result), bitsOf(least));
        reduce(DataType::kFloat64, ReduceOp::kMax, result, sources, 5);
        EXPECT_EQ(bitsOf(result), bitsOf(greatest));
    }
}

// https://github.com/NVIDIA/nccl/issues/1026: rounding at every hop loses each of the ones.
TEST_P(ReducerTest, Num12Bfloat16RoundsOnce) {
    std::vector<std::vector<std::uint16_t>> sources(9, std::vector<std::uint16_t>(65, 0x3F80));
    sources[0].assign(65, 0x4380);  // 256; the others are 1.0; 257 is not a bf16
    std::vector<const void*> pointers;
    for (const auto& source : sources) pointers.push_back(source.data());
    std::vector<std::uint16_t> sum(65);
    reduce(DataType::kBfloat16, ReduceOp::kSum, sum.data(), pointers, sum.size());
    EXPECT_EQ(sum, std::vector<std::uint16_t>(65, 0x4384));  // 264
    reduce(DataType::kBfloat16, ReduceOp::kAvg, sum.data(), pointers, sum.size(), 1.0 / 8);
    EXPECT_EQ(sum, std::vector<std::uint16_t>(65, 0x4204));  // 33
}

// Whether a block of numbers holds one that is none decides how it is rounded.
TEST_P(ReducerTest, Bfloat16SumsRoundAlikeBesideWhatIsNoNumber) {
    constexpr std::uint16_t kNan = 0x7FC1;
    constexpr std::uint16_t kInfinity = 0x7F80;
    for (const std::size_t every : {std::size_t{1} << 20, std::size_t{500}, std::size_t{37}}) {
        std::mt19937 random(7);
        std::vector<std::uint16_t> left(65536);
        std::vector<std::uint16_t> right(left.size());
        for (std::size_t i = 0; i < left.size(); ++i) {
            left[i] = static_cast<std::uint16_t>(i);
            if ((left[i] & 0x7F80) == 0x7F80) left[i] = 0x3F81;
            // Half a unit of the last place and its neighbours, of either sign.
            right[i] =
                static_cast<std::uint16_t>((left[i] ^ (random() & 0x8000)) - 0x400 + random() % 3);
            if ((right[i] & 0x7F80) == 0x7F80) right[i] = 0;
            if (i % every != every / 2) continue;
            left[i] = i % 2 == 0 ? kNan : kInfinity;
            right[i] = i % 2 == 0 ? 0x3F80 : kInfinity | 0x8000;
        }
        const void* const sources[] = {left.data(), right.data()};
        std::vector<std::uint16_t> sum(left.size());
        reduce(DataType::kBfloat16, ReduceOp::kSum, sum.data(), sources, sum.size());
        for (std::size_t i = 0; i < sum.size(); ++i) {
            const auto a = static_cast<float>(decodeSmall(DataType::kBfloat16, left[i]));
            const auto b = static_cast<float>(decodeSmall(DataType::kBfloat16, right[i]));
            if (i % every == every / 2) {
                ASSERT_TRUE(std::isnan(decodeSmall(DataType::kBfloat16, sum[i]))) << i;
            } else {
                ASSERT_EQ(sum[i], encodeSmall(DataType::kBfloat16, a + b)) << a << " + " << b;
            }
        }
    }
}

TEST_P(ReducerTest, HalfPrecisionSumPassesItsOwnLimitOnTheWay) {
    // 60000 + 60000 - 60000 in f16: infinite only if an intermediate sum is rounded.
    const std::uint16_t big = encodeSmall(DataType::kFloat16, 60000.0);
    const std::uint16_t values[] = {big, big, static_cast<std::uint16_t>(big | 0x8000)};
    const void* const sources[] = {&values[0], &values[1], &values[2]};
    std::uint16_t sum = 0;
    reduce(DataType::kFloat16, ReduceOp::kSum, &sum, sources, 1);
    EXPECT_EQ(sum, big);
}

TEST_P(ReducerTest, RoundsEverySixteenBitPatternTimesAFactorAsTheFormatSays) {
    for (const DataType type : {DataType::kFloat16, DataType::kBfloat16}) {
        std::vector<std::uint16_t> all(65536);
        for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
        const void* const source = all.data();
        // 1: the identity; the others: ties, overflow to infinity, subnormal results.
        for (const double factor : {1.00390625, 1.5, 2.25, 0.4375, 0.001953125 * 1.25}) {
            std::vector<std::uint16_t> scaled(all.size());
            reduce(type, ReduceOp::kAvg, scaled.data(), {&source, 1}, all.size(), factor);
            for (std::size_t i = 0; i < all.size(); ++i) {
                const double exact = decodeSmall(type, all[i]) * factor;
                // Below the least normal f32 the product is rounded twice; no bf16 user is there.
                if (type == DataType::kBfloat16 && std::fabs(exact) < 0x1p-126) continue;
                const std::uint16_t expected = encodeSmall(type, exact);
                if (std::isnan(exact)) {
                    ASSERT_TRUE(std::isnan(decodeSmall(type, scaled[i]))) << i;
                } else {
                    ASSERT_EQ(scaled[i], expected) << nameOf(type) << " " << i << " x " << factor;
                }
            }
        }
    }
}

TEST(Half, ConvertsEveryPatternThereAndBack) {
    for (std::uint32_t i = 0; i < 65536; ++i) {
        const auto bits = static_cast<std::uint16_t>(i);
        const double f16 = decodeSmall(DataType::kFloat16, bits);
        const double bf16 = decodeSmall(DataType::kBfloat16, bits);
        if (std::isnan(f16)) {
            ASSERT_TRUE(std::isnan(fromFloat16(bits)));
            ASSERT_TRUE(std::isnan(decodeSmall(DataType::kFloat16, toFloat16(fromFloat16(bits)))));
        } else {
            ASSERT_EQ(fromFloat16(bits), f16) << i;
            ASSERT_EQ(toFloat16(static_cast<float>(f16)), bits);
        }
        if (std::isnan(bf16)) {
            ASSERT_TRUE(
                std::isnan(decodeSmall(DataType::kBfloat16, toBfloat16(fromBfloat16(bits)))));
        } else {
            ASSERT_EQ(fromBfloat16(bits), bf16) << i;
            ASSERT_EQ(toBfloat16(static_cast<float>(bf16)), bits);
        }
    }
}

TEST_P(ReducerTest, CopiesAnyLengthStreamingOrNot) {
    for (const bool streaming : {false, true}) {
        for (const std::size_t bytes : {0u, 1u, 63u, 64u, 65u, 1000u, 70001u}) {
            std::mt19937_64 random(bytes);
            const Buffer source = randomBuffer(DataType::kUint8, bytes + 3, random);
            Buffer target(bytes + 2, std::byte(0xA5));
            copyBytes(target.data() + 1, source.data() + 3, bytes, streaming);
            EXPECT_EQ(std::memcmp(target.data() + 1, source.data() + 3, bytes), 0) << bytes;
            EXPECT_EQ(target.front(), std::byte(0xA5));
            EXPECT_EQ(target.back(), std::byte(0xA5));
        }
    }
}

TEST_P(ReducerTest, LeavesTheTargetAloneForNoElements) {
    std::uint8_t target = 7;
    const void* const source = &target;
    reduce(DataType::kUint8, ReduceOp::kSum, &target, {&source, 1}, 0);
    EXPECT_EQ(target, 7);
}

}  // namespace
}  // namespace isthmus::test
