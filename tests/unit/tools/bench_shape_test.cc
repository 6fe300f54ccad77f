#include "tools/cli/bench_shape.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/cli/bench_uneven.hpp"

namespace isthmus::cli {
namespace {

TEST(BenchShape, RoundsBlocksDownTo16Bytes) {
    // 1000 bytes over 3 ranks: 83 floats each, rounded down to 80; the size is computed anew.
    const BenchShape shape = benchShape(Collective::kAllGather, DataType::kFloat32, 3, 1000);
    EXPECT_EQ(shape.elements, 80u);
    EXPECT_EQ(shape.sendElements, 80u);
    EXPECT_EQ(shape.recvElements, 240u);
    EXPECT_EQ(shape.sizeBytes, 960u);
    EXPECT_EQ(benchShape(Collective::kAllToAll, DataType::kFloat32, 4, 8).sizeBytes, 0u);
}

TEST(UnevenBlocks, AreAsManyAsEvenOnesAndTheSameBothWays) {
    // 4 ranks, 8 elements in an even block: 1, 3, 5 and 7 fourths of it, by (i + j) mod 4.
    EXPECT_THAT(UnevenBlocks::of(8, 0, 4).counts, testing::ElementsAre(2, 6, 10, 14));
    const UnevenBlocks third = UnevenBlocks::of(8, 2, 4);
    EXPECT_THAT(third.counts, testing::ElementsAre(10, 14, 2, 6));
    EXPECT_THAT(third.offsets, testing::ElementsAre(0, 10, 24, 26));
    EXPECT_EQ(third.total, 32u);
    // Nodes {0, 1} and {2, 3}: 0 sends 10 + 14 over, 1 sends 14 + 2.
    EXPECT_EQ(unevenBound(8, Layout::of({0, 0, 1, 1})), 40u);
    EXPECT_EQ(UnevenBlocks::of(0, 1, 3).total, 0u);
}

TEST(BenchShape, KeepsWholeOperandsAsTheyAre) {
    const BenchShape shape = benchShape(Collective::kAllReduce, DataType::kFloat64, 3, 1000);
    EXPECT_EQ(shape.elements, 125u);
    EXPECT_EQ(shape.sizeBytes, 1000u);
    const BenchShape scattered = benchShape(Collective::kReduceScatter, DataType::kUint8, 2, 96);
    EXPECT_EQ(scattered.sendElements, 96u);
    EXPECT_EQ(scattered.recvElements, 48u);
}

TEST(BusFactor, IsThatOfNcclTests) {
    EXPECT_DOUBLE_EQ(busFactor(Collective::kAllReduce, 4), 1.5);
    EXPECT_DOUBLE_EQ(busFactor(Collective::kAllToAll, 4), 0.75);
    EXPECT_DOUBLE_EQ(busFactor(Collective::kBroadcast, 4), 1);
}

TEST(BenchType, KnowsBothSpellings) {
    EXPECT_EQ(*benchType("half"), DataType::kFloat16);
    EXPECT_EQ(*benchType("bf16"), DataType::kBfloat16);
    EXPECT_EQ(ncclNameOf(DataType::kBfloat16), "bfloat16");
    EXPECT_EQ(*benchType("c64"), DataType::kComplex64);
    EXPECT_EQ(*benchType("complex128"), DataType::kComplex128);
    EXPECT_EQ(*benchType("f8e4m3"), DataType::kFloat8e4m3);
    EXPECT_EQ(ncclNameOf(DataType::kFloat8e5m2), "f8e5m2");
    const Result<DataType> unknown = benchType("flaot");
    ASSERT_FALSE(unknown.ok());
    EXPECT_NE(unknown.status().what().find("bfloat16"), std::string::npos);
}

}  // namespace
}  // namespace isthmus::cli
