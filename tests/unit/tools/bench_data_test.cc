#include "tools/cli/bench_data.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace isthmus::cli {
namespace {

constexpr std::uint64_t kElements = 257;

std::vector<std::byte> operandOf(DataType type, ReduceOp op, Rank rank, std::uint64_t first = 0) {
    std::vector<std::byte> bytes(kElements * bytesOf(type));
    fillOperand(bytes.data(), kElements, type, op, rank, first);
    return bytes;
}

template <typename Number>
Number at(const std::vector<std::byte>& bytes, std::size_t index) {
    Number number;
    std::memcpy(&number, bytes.data() + index * sizeof(Number), sizeof(Number));
    return number;
}

TEST(BenchData, CopiesMatchTheirSourceOnly) {
    for (int index = 0; index < kDataTypes; ++index) {
        const auto type = static_cast<DataType>(index);
        const std::vector<std::byte> mine = operandOf(type, ReduceOp::kSum, 3, 1000);
        EXPECT_EQ(wrongCopies(mine.data(), kElements, type, ReduceOp::kSum, 3, 1000), 0u);
        EXPECT_GT(wrongCopies(mine.data(), kElements, type, ReduceOp::kSum, 2, 1000), 60u);
        EXPECT_GT(wrongCopies(mine.data(), kElements, type, ReduceOp::kSum, 3, 999), 60u);
    }
}

TEST(BenchData, SumsOfFloatsAreCheckedBitForBit) {
    const std::vector<std::byte> one = operandOf(DataType::kFloat32, ReduceOp::kSum, 0);
    const std::vector<std::byte> other = operandOf(DataType::kFloat32, ReduceOp::kSum, 1);
    std::vector<float> sums(kElements);
    for (std::size_t index = 0; index < kElements; ++index) {
        sums[index] = at<float>(one, index) + at<float>(other, index);
        EXPECT_LE(std::abs(sums[index]), 64);
    }
    auto* const bytes = reinterpret_cast<std::byte*>(sums.data());
    EXPECT_EQ(wrongSums(bytes, kElements, DataType::kFloat32, ReduceOp::kSum, 2, 0), 0u);
    sums[5] += 1;
    sums[256] = 1e9f;
    EXPECT_EQ(wrongSums(bytes, kElements, DataType::kFloat32, ReduceOp::kSum, 2, 0), 2u);
}

TEST(BenchData, PartsOfComplexNumbersAreSummedByThemselves) {
    std::vector<float> averages(2 * kElements);
    for (Rank rank = 0; rank < 4; ++rank) {
        const std::vector<std::byte> mine = operandOf(DataType::kComplex64, ReduceOp::kAvg, rank);
        for (std::size_t index = 0; index < averages.size(); ++index)
            averages[index] += at<float>(mine, index) / 4;
    }
    auto* const bytes = reinterpret_cast<std::byte*>(averages.data());
    EXPECT_EQ(wrongSums(bytes, kElements, DataType::kComplex64, ReduceOp::kAvg, 4, 0), 0u);
    averages[2 * kElements - 1] += 1;
    EXPECT_EQ(wrongSums(bytes, kElements, DataType::kComplex64, ReduceOp::kAvg, 4, 0), 1u);
}

TEST(BenchData, IntegersWrapAround) {
    std::vector<std::uint8_t> products(kElements, 1);
    for (Rank rank = 0; rank < 3; ++rank) {
        const std::vector<std::byte> mine = operandOf(DataType::kUint8, ReduceOp::kProd, rank);
        for (std::size_t index = 0; index < kElements; ++index) {
            products[index] =
                static_cast<std::uint8_t>(products[index] * at<std::uint8_t>(mine, index));
        }
    }
    const auto* const bytes = reinterpret_cast<const std::byte*>(products.data());
    EXPECT_EQ(wrongSums(bytes, kElements, DataType::kUint8, ReduceOp::kProd, 3, 0), 0u);
}

TEST(BenchData, SignedMinimumIsSigned) {
    std::vector<std::int16_t> least(kElements, 32767);
    for (Rank rank = 0; rank < 2; ++rank) {
        const std::vector<std::byte> mine = operandOf(DataType::kInt16, ReduceOp::kMin, rank);
        for (std::size_t index = 0; index < kElements; ++index) {
            least[index] = std::min(least[index], at<std::int16_t>(mine, index));
        }
    }
    const auto* const bytes = reinterpret_cast<const std::byte*>(least.data());
    EXPECT_EQ(wrongSums(bytes, kElements, DataType::kInt16, ReduceOp::kMin, 2, 0), 0u);
}

}  // namespace
}  // namespace isthmus::cli
