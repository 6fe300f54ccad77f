// What the C header adds to the collectives below it: displacements, numbers of types and
// operations, operations of the user.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "tests/support/local_job.hpp"
#include "tests/unit/capi/comm_of.hpp"

namespace isthmus::test {
namespace {

using testing::HasSubstr;

TEST(GatherV, PutsBlocksWhereTheRootWantsThemAndNowhereElse) {
    LocalJob job({0, 0, 1});
    job.run([](Rank rank, Communicator& communicator) {
        CommOf comm(communicator);
        const std::vector<std::size_t> counts = {2, 0, 3};
        const std::vector<std::size_t> places = {4, 100, 0};  // nothing is put at 100
        std::vector<int> mine(counts[rank]);
        std::iota(mine.begin(), mine.end(), 10 * rank);
        std::vector<int> all(7, -1);
        const bool isRoot = rank == 2;
        ASSERT_EQ(
            isthmusGatherV(mine.data(), mine.size(), isRoot ? all.data() : nullptr, counts.data(),
                           isRoot ? places.data() : nullptr, isthmusInt, 2, comm, nullptr, nullptr),
            isthmusSuccess)
            << lastError();
        const std::vector<int> gathered = {20, 21, 22, -1, 0, 1, -1};
        EXPECT_EQ(all, isRoot ? gathered : std::vector<int>(7, -1));
    });
}

TEST(ScatterV, TakesBlocksFromWhereTheRootHasThem) {
    LocalJob job({0, 1, 1});
    job.run([](Rank rank, Communicator& communicator) {
        CommOf comm(communicator);
        const std::vector<std::size_t> counts = {1, 3, 0};
        const std::vector<std::size_t> places = {5, 0, 9};
        const std::vector<double> all = {0.5, 1.5, 2.5, 3.5, 4.5, 5.5};
        std::vector<double> mine(counts[rank] + 1, -1);
        const bool isRoot = rank == 0;
        ASSERT_EQ(isthmusScatterV(isRoot ? all.data() : nullptr, counts.data(),
                                  isRoot ? places.data() : nullptr, mine.data(), counts[rank],
                                  isthmusDouble, 0, comm, nullptr, nullptr),
                  isthmusSuccess)
            << lastError();
        const std::vector<std::vector<double>> wanted = {{5.5, -1}, {0.5, 1.5, 2.5, -1}, {-1}};
        EXPECT_EQ(mine, wanted[rank]);
    });
}

TEST(Counts, ThatDisagreeWithTheCallAreRefusedByName) {
    LocalJob job({0});
    job.run([](Rank, Communicator& communicator) {
        CommOf comm(communicator);
        int number = 7;
        const std::size_t none = 0;
        EXPECT_EQ(isthmusGatherV(&number, 1, &number, nullptr, nullptr, isthmusInt, 0, comm,
                                 nullptr, nullptr),
                  isthmusInvalidArgument);
        EXPECT_EQ(lastError(), "gather: recvcounts is null");
        EXPECT_EQ(isthmusGatherV(&number, 1, &number, &none, nullptr, isthmusInt, 0, comm, nullptr,
                                 nullptr),
                  isthmusInvalidArgument);
        EXPECT_EQ(lastError(), "gather: sendcount 1 is not recvcounts[0] = 0");
        EXPECT_EQ(isthmusScatterV(&number, &none, nullptr, &number, 1, isthmusInt, 0, comm, nullptr,
                                  nullptr),
                  isthmusInvalidArgument);
        EXPECT_EQ(lastError(), "scatter: recvcount 1 is not sendcounts[0] = 0");
        // More than memory holds: said before anything is copied.
        const std::size_t vast = SIZE_MAX / 2;
        const std::size_t place = 1;
        EXPECT_EQ(isthmusAllGatherV(&number, vast, &number, &vast, &place, isthmusInt, comm,
                                    nullptr, nullptr),
                  isthmusInvalidArgument);
        EXPECT_THAT(lastError(), HasSubstr("too large"));
    });
}

TEST(Numbers, OutsideOfTheHeaderAreNoTypesNorOperations) {
    LocalJob job({0});
    job.run([](Rank, Communicator& communicator) {
        CommOf comm(communicator);
        int number = 7;
        // 256 has the low byte of isthmusInt8 and isthmusSum.
        for (const int unknown : {-1, 17, 256}) {
            EXPECT_EQ(isthmusAllReduce(&number, &number, 1, static_cast<isthmusDataType_t>(unknown),
                                       isthmusSum, comm, nullptr, nullptr),
                      isthmusInvalidArgument);
            EXPECT_EQ(lastError(), "all_reduce: unknown data type " + std::to_string(unknown));
            EXPECT_EQ(isthmusSend(&number, 1, static_cast<isthmusDataType_t>(unknown), 0, 0, comm,
                                  nullptr, nullptr),
                      isthmusInvalidArgument);
        }
        for (const int unknown : {-1, 8, 256}) {
            EXPECT_EQ(
                isthmusAllReduce(&number, &number, 1, isthmusInt,
                                 static_cast<isthmusRedOp_t>(unknown), comm, nullptr, nullptr),
                isthmusInvalidArgument);
            EXPECT_EQ(lastError(), "all_reduce: unknown reduction " + std::to_string(unknown));
        }
        EXPECT_EQ(number, 7);
    });
}

/// "op" that multiplies by `factor`.
isthmusRedOp_t premulSum(isthmusComm_t comm, float factor) {
    isthmusRedOp_t op = isthmusSum;
    EXPECT_EQ(
        isthmusRedOpCreatePreMulSum(&op, &factor, isthmusFloat, isthmusScalarHostImmediate, comm),
        isthmusSuccess);
    return op;
}

TEST(PremulSum, MultipliesEveryInputByItsRanksFactor) {
    LocalJob job({0, 0, 1});
    job.run([](Rank rank, Communicator& communicator) {
        CommOf comm(communicator);
        const isthmusRedOp_t op = premulSum(comm, static_cast<float>(rank + 1));
        // 2 * 1 + 2 * 2 + 2 * 3
        for (const std::size_t count : {1, 1000, 100003}) {
            const std::vector<float> input(count, 2);
            std::vector<float> output(count);
            ASSERT_EQ(isthmusAllReduce(input.data(), output.data(), count, isthmusFloat, op, comm,
                                       nullptr, nullptr),
                      isthmusSuccess)
                << lastError();
            EXPECT_EQ(output, std::vector<float>(count, 12));
            EXPECT_EQ(input, std::vector<float>(count, 2));
            output.assign(count, 2);
            ASSERT_EQ(isthmusAllReduce(output.data(), output.data(), count, isthmusFloat, op, comm,
                                       nullptr, nullptr),
                      isthmusSuccess);
            EXPECT_EQ(output, std::vector<float>(count, 12));
        }
        std::vector<float> blocks = {1, 2, 3};
        float mine = 0;
        ASSERT_EQ(
            isthmusReduceScatter(blocks.data(), &mine, 1, isthmusFloat, op, comm, nullptr, nullptr),
            isthmusSuccess);
        EXPECT_EQ(mine, 6.0f * static_cast<float>(rank + 1));
        std::vector<float> at(3, -1);
        ASSERT_EQ(
            isthmusReduce(blocks.data(), at.data(), 3, isthmusFloat, op, 1, comm, nullptr, nullptr),
            isthmusSuccess);
        EXPECT_EQ(at, rank == 1 ? (std::vector<float>{6, 12, 18}) : std::vector<float>(3, -1));
        EXPECT_EQ(blocks, (std::vector<float>{1, 2, 3}));
        EXPECT_EQ(isthmusRedOpDestroy(op, comm), isthmusSuccess);
    });
}

TEST(PremulSum, IsForTheTypeItWasMadeForAndUntilItIsDestroyed) {
    LocalJob job({0});
    job.run([](Rank, Communicator& communicator) {
        CommOf comm(communicator);
        const std::uint16_t half = 0x3800;  // 0.5 as f16
        std::uint16_t value = 0x4200;       // 3
        isthmusRedOp_t op = isthmusSum;
        ASSERT_EQ(isthmusRedOpCreatePreMulSum(&op, const_cast<std::uint16_t*>(&half), isthmusHalf,
                                              isthmusScalarHostImmediate, comm),
                  isthmusSuccess);
        ASSERT_EQ(isthmusAllReduce(&value, &value, 1, isthmusHalf, op, comm, nullptr, nullptr),
                  isthmusSuccess);
        EXPECT_EQ(value, 0x3E00);  // 1.5
        EXPECT_EQ(isthmusAllReduce(&value, &value, 1, isthmusBfloat16, op, comm, nullptr, nullptr),
                  isthmusInvalidArgument);
        EXPECT_EQ(lastError(), "all_reduce: this premul_sum is of f16, not of bf16");
        EXPECT_EQ(isthmusRedOpDestroy(op, comm), isthmusSuccess);
        EXPECT_EQ(isthmusRedOpDestroy(op, comm), isthmusInvalidArgument);
        EXPECT_EQ(isthmusRedOpDestroy(isthmusSum, comm), isthmusInvalidArgument);
        EXPECT_EQ(isthmusAllReduce(&value, &value, 1, isthmusHalf, op, comm, nullptr, nullptr),
                  isthmusInvalidArgument);
        int whole = 2;
        EXPECT_EQ(
            isthmusRedOpCreatePreMulSum(&op, &whole, isthmusInt, isthmusScalarHostImmediate, comm),
            isthmusInvalidArgument);
        EXPECT_EQ(lastError(), "premul_sum is not defined on i32; it is for floating types only");
        EXPECT_EQ(isthmusRedOpCreatePreMulSum(&op, &whole, isthmusFloat, isthmusScalarDevice, comm),
                  isthmusUnsupported);
    });
}

TEST(PremulSum, IsNoPlainSumToTheOtherRanks) {
    LocalJob job({0, 1});
    job.run([](Rank rank, Communicator& communicator) {
        CommOf comm(communicator);
        const isthmusRedOp_t op = rank == 0 ? isthmusSum : premulSum(comm, 2);
        std::vector<float> values(100, 1);
        EXPECT_EQ(isthmusAllReduce(values.data(), values.data(), values.size(), isthmusFloat, op,
                                   comm, nullptr, nullptr),
                  isthmusMismatch);
        EXPECT_THAT(lastError(), HasSubstr("all_reduce f32 x 100 premul_sum"));
        EXPECT_THAT(lastError(), HasSubstr("all_reduce f32 x 100 sum"));
    });
}

}  // namespace
}  // namespace isthmus::test
