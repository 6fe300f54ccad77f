#include "tools/cli/bench_shape.hpp"

#include <gtest/gtest.h>

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
