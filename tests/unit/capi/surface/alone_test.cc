// What a rank alone must get from every call: its own data, in every form of the call.
#include <gmock/gmock.h>

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "tests/unit/capi/surface/alone.hpp"

namespace isthmus::test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

class WorldOfOne : public Alone {
protected:
    std::array<int, 3> in{7, -8, 9};
    std::array<int, 3> out{};
    static constexpr isthmusDataType_t kType = isthmusInt32;
};

TEST_F(WorldOfOne, KnowsItsPlace) {
    int number = -1;
    ASSERT_EQ(isthmusCommCount(comm(), &number), isthmusSuccess);
    EXPECT_EQ(number, 1);
    ASSERT_EQ(isthmusCommUserRank(comm(), &number), isthmusSuccess);
    EXPECT_EQ(number, 0);
    ASSERT_EQ(isthmusCommNodes(comm(), &number), isthmusSuccess);
    EXPECT_EQ(number, 0);
    isthmusWireCounters_t counters{sizeof(counters), 1, 1, 1, 1};
    ASSERT_EQ(isthmusWireCounters(comm(), &counters), isthmusSuccess);
    EXPECT_EQ(counters.sent_payload + counters.received_payload, 0U);
    EXPECT_EQ(counters.sent_total + counters.received_total, 0U);
    int cards = 0;
    EXPECT_EQ(isthmusCardCounters(comm(), nullptr, &cards), isthmusSuccess);
    cards = 1;
    EXPECT_EQ(isthmusCardCounters(comm(), nullptr, &cards), isthmusInvalidArgument);
}

TEST_F(WorldOfOne, EveryCollectiveCopiesInputToOutput) {
    const size_t three = 3;
    const auto expectCopied = [&](isthmusResult_t result, const char* what) {
        EXPECT_EQ(result, isthmusSuccess) << what << ": " << lastError();
        EXPECT_THAT(out, ElementsAre(7, -8, 9)) << what;
        out = {};
    };
    const void* send = in.data();
    void* receive = out.data();
    for (const auto op :
         {isthmusSum, isthmusProd, isthmusMin, isthmusMax, isthmusBand, isthmusBor, isthmusBxor}) {
        expectCopied(isthmusAllReduce(send, receive, 3, kType, op, comm(), nullptr, nullptr),
                     "all-reduce");
        expectCopied(isthmusReduce(send, receive, 3, kType, op, 0, comm(), nullptr, nullptr),
                     "reduce");
        expectCopied(isthmusReduceScatter(send, receive, 3, kType, op, comm(), nullptr, nullptr),
                     "reduce-scatter");
        expectCopied(
            isthmusReduceScatterV(send, receive, &three, kType, op, comm(), nullptr, nullptr),
            "reduce-scatter v");
    }
    expectCopied(isthmusBroadcast(send, receive, 3, kType, 0, comm(), nullptr, nullptr),
                 "broadcast");
    expectCopied(isthmusAllGather(send, receive, 3, kType, comm(), nullptr, nullptr), "all-gather");
    expectCopied(isthmusAlltoAll(send, receive, 3, kType, comm(), nullptr, nullptr), "all-to-all");
    expectCopied(isthmusGather(send, receive, 3, kType, 0, comm(), nullptr, nullptr), "gather");
    expectCopied(isthmusScatter(send, receive, 3, kType, 0, comm(), nullptr, nullptr), "scatter");
    expectCopied(
        isthmusAllGatherV(send, 3, receive, &three, nullptr, kType, comm(), nullptr, nullptr),
        "all-gather v");
    expectCopied(isthmusAlltoAllV(send, &three, nullptr, receive, &three, nullptr, kType, comm(),
                                  nullptr, nullptr),
                 "all-to-all v");
    EXPECT_EQ(isthmusBarrier(comm(), nullptr, nullptr), isthmusSuccess);
    EXPECT_THAT(in, ElementsAre(7, -8, 9)) << "inputs are read only";
}

TEST_F(WorldOfOne, InPlaceFormsChangeNothing) {
    const auto expectSame = [&](isthmusResult_t result, const char* what) {
        EXPECT_EQ(result, isthmusSuccess) << what << ": " << lastError();
        EXPECT_THAT(in, ElementsAre(7, -8, 9)) << what;
    };
    const size_t three = 3;
    void* at = in.data();
    expectSame(isthmusAllReduce(at, at, 3, kType, isthmusSum, comm(), nullptr, nullptr),
               "all-reduce");
    expectSame(isthmusBroadcast(at, at, 3, kType, 0, comm(), nullptr, nullptr), "broadcast");
    expectSame(isthmusReduce(at, at, 3, kType, isthmusSum, 0, comm(), nullptr, nullptr), "reduce");
    expectSame(isthmusAllGather(at, at, 3, kType, comm(), nullptr, nullptr), "all-gather");
    expectSame(isthmusReduceScatter(at, at, 3, kType, isthmusSum, comm(), nullptr, nullptr),
               "reduce-scatter");
    expectSame(isthmusAlltoAll(at, at, 3, kType, comm(), nullptr, nullptr), "all-to-all");
    expectSame(isthmusGather(at, at, 3, kType, 0, comm(), nullptr, nullptr), "gather");
    expectSame(isthmusScatter(at, at, 3, kType, 0, comm(), nullptr, nullptr), "scatter");
    expectSame(
        isthmusAlltoAllV(at, &three, nullptr, at, &three, nullptr, kType, comm(), nullptr, nullptr),
        "all-to-all v");
}

// NUM-08: the average over one rank is the value itself, also where halves must round.
TEST_F(WorldOfOne, AverageOfOneIsItself) {
    const std::array<float, 4> values{1.5F, -0.0F, std::numeric_limits<float>::infinity(), 1e-40F};
    std::array<float, 4> averaged{};
    ASSERT_EQ(isthmusAllReduce(values.data(), averaged.data(), 4, isthmusFloat32, isthmusAvg,
                               comm(), nullptr, nullptr),
              isthmusSuccess)
        << lastError();
    using Bits = std::array<std::uint32_t, 4>;
    EXPECT_EQ(std::bit_cast<Bits>(averaged), std::bit_cast<Bits>(values));
    const std::array<std::uint16_t, 3> halves{0x3c01, 0x8000, 0x0001};  // any f16 or bf16 bits
    for (const auto type : {isthmusFloat16, isthmusBfloat16}) {
        std::array<std::uint16_t, 3> averagedHalves{};
        ASSERT_EQ(isthmusAllReduce(halves.data(), averagedHalves.data(), 3, type, isthmusAvg,
                                   comm(), nullptr, nullptr),
                  isthmusSuccess)
            << lastError();
        EXPECT_EQ(halves, averagedHalves);
    }
}

// NUM-03: nothing to move is no special case.
TEST_F(WorldOfOne, ZeroElementsTouchNothing) {
    const size_t none = 0;
    out = {1, 1, 1};
    const void* send = in.data();
    void* receive = out.data();
    EXPECT_EQ(isthmusAllReduce(send, receive, 0, kType, isthmusSum, comm(), nullptr, nullptr),
              isthmusSuccess);
    EXPECT_EQ(isthmusBroadcast(send, receive, 0, kType, 0, comm(), nullptr, nullptr),
              isthmusSuccess);
    EXPECT_EQ(
        isthmusReduceScatterV(send, receive, &none, kType, isthmusSum, comm(), nullptr, nullptr),
        isthmusSuccess);
    EXPECT_EQ(
        isthmusAllGatherV(nullptr, 0, nullptr, &none, nullptr, kType, comm(), nullptr, nullptr),
        isthmusSuccess);
    EXPECT_EQ(isthmusAlltoAllV(send, &none, &none, receive, &none, nullptr, kType, comm(), nullptr,
                               nullptr),
              isthmusSuccess);
    EXPECT_EQ(isthmusGather(nullptr, nullptr, 0, kType, 0, comm(), nullptr, nullptr),
              isthmusSuccess);
    EXPECT_THAT(out, Each(1));
}

TEST_F(WorldOfOne, DisplacementsMoveBlocksAndLeaveTheGapsAlone) {
    const size_t two = 2;
    const size_t one = 1;
    const size_t three = 3;
    std::array<int, 6> wide{0, 0, 0, 0, 0, 0};
    ASSERT_EQ(
        isthmusAllGatherV(in.data(), 2, wide.data(), &two, &three, kType, comm(), nullptr, nullptr),
        isthmusSuccess)
        << lastError();
    EXPECT_THAT(wide, ElementsAre(0, 0, 0, 7, -8, 0));
    wide.fill(0);
    ASSERT_EQ(isthmusAlltoAllV(in.data(), &two, &one, wide.data(), &two, &three, kType, comm(),
                               nullptr, nullptr),
              isthmusSuccess)
        << lastError();
    EXPECT_THAT(wide, ElementsAre(0, 0, 0, -8, 9, 0));
}

// Many segments: the sizes round a segment's border, and a value that tells each place.
TEST_F(WorldOfOne, LargeCallsAreWhole) {
    for (const size_t count : {size_t{262143}, size_t{262144}, size_t{262145}, size_t{1} << 21}) {
        std::vector<std::uint32_t> from(count);
        std::iota(from.begin(), from.end(), 1U);
        std::vector<std::uint32_t> to(count);
        ASSERT_EQ(isthmusAllReduce(from.data(), to.data(), count, isthmusUint32, isthmusSum, comm(),
                                   nullptr, nullptr),
                  isthmusSuccess)
            << lastError();
        EXPECT_EQ(from, to) << count;
    }
}

TEST_F(WorldOfOne, AMessageToItself) {
    int source = -5;
    isthmusRequest_t receive = nullptr;
    ASSERT_EQ(isthmusRecv(out.data(), 3, kType, ISTHMUS_ANY_SOURCE, 4, &source, comm(), nullptr,
                          &receive),
              isthmusSuccess)
        << lastError();
    ASSERT_EQ(isthmusSend(in.data(), 3, kType, 0, 4, comm(), nullptr, nullptr), isthmusSuccess)
        << lastError();
    ASSERT_EQ(isthmusWait(&receive, 5000), isthmusSuccess) << lastError();
    EXPECT_EQ(receive, nullptr);
    EXPECT_EQ(source, 0);
    EXPECT_THAT(out, ElementsAre(7, -8, 9));
}

TEST_F(WorldOfOne, TagsTellMessagesApart) {
    int first = 0;
    int second = 0;
    std::array<isthmusRequest_t, 2> sends{};
    ASSERT_EQ(isthmusSend(&in[0], 1, kType, 0, 1, comm(), nullptr, &sends[0]), isthmusSuccess);
    ASSERT_EQ(isthmusSend(&in[1], 1, kType, 0, 2, comm(), nullptr, &sends[1]), isthmusSuccess);
    ASSERT_EQ(isthmusRecv(&second, 1, kType, 0, 2, nullptr, comm(), nullptr, nullptr),
              isthmusSuccess)
        << lastError();
    ASSERT_EQ(isthmusRecv(&first, 1, kType, 0, 1, nullptr, comm(), nullptr, nullptr),
              isthmusSuccess)
        << lastError();
    EXPECT_EQ(first, 7);
    EXPECT_EQ(second, -8);
    EXPECT_EQ(isthmusWaitAll(2, sends.data(), 5000), isthmusSuccess) << lastError();
}

TEST_F(WorldOfOne, BlockingCallsInAGroupMeetEachOther) {
    ASSERT_EQ(isthmusGroupStart(), isthmusSuccess);
    ASSERT_EQ(isthmusGroupStart(), isthmusSuccess);
    EXPECT_EQ(isthmusSend(in.data(), 3, kType, 0, 0, comm(), nullptr, nullptr), isthmusSuccess);
    EXPECT_EQ(isthmusGroupEnd(), isthmusSuccess) << "the inner end begins nothing";
    int source = -5;
    EXPECT_EQ(isthmusRecv(out.data(), 3, kType, 0, 0, &source, comm(), nullptr, nullptr),
              isthmusSuccess);
    ASSERT_EQ(isthmusGroupEnd(), isthmusSuccess) << lastError();
    EXPECT_THAT(out, ElementsAre(7, -8, 9));
    EXPECT_EQ(source, 0);
}

TEST_F(WorldOfOne, SplitsIntoItselfOrNothing) {
    isthmusComm_t child = nullptr;
    isthmusConfig_t config = ISTHMUS_CONFIG_INITIALIZER;
    config.name = "child";
    ASSERT_EQ(isthmusCommSplit(comm(), 3, -1, &child, &config), isthmusSuccess) << lastError();
    ASSERT_NE(child, nullptr);
    int ranks = 0;
    EXPECT_EQ(isthmusCommCount(child, &ranks), isthmusSuccess);
    EXPECT_EQ(ranks, 1);
    EXPECT_EQ(isthmusAllReduce(in.data(), nullptr, 3, kType, isthmusSum, child, nullptr, nullptr),
              isthmusInvalidArgument);
    EXPECT_THAT(lastError(), ::testing::HasSubstr("child")) << "messages carry the name";
    EXPECT_EQ(isthmusCommDestroy(child), isthmusSuccess);
    ASSERT_EQ(isthmusCommSplit(comm(), -1, 0, &child, nullptr), isthmusSuccess) << lastError();
    EXPECT_EQ(child, nullptr);
}

TEST(Memory, IsZeroAlignedAndUsable) {
    for (const size_t bytes : {size_t{1}, size_t{63}, size_t{4096}, size_t{3} << 20}) {
        void* memory = nullptr;
        ASSERT_EQ(isthmusMemAlloc(&memory, bytes), isthmusSuccess) << lastError();
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 64, 0U);
        auto* first = static_cast<unsigned char*>(memory);
        EXPECT_EQ(std::accumulate(first, first + bytes, 0U), 0U) << bytes << " bytes";
        std::memset(memory, 0xff, bytes);  // the next owner must find zeros again
        EXPECT_EQ(isthmusMemFree(memory), isthmusSuccess) << lastError();
    }
}

}  // namespace
}  // namespace isthmus::test
