// Wrong arguments: the code is isthmusInvalidArgument, the text says what is wrong, nothing starts.
#include <gmock/gmock.h>

#include <array>
#include <climits>
#include <set>
#include <thread>

#include "tests/unit/capi/surface/alone.hpp"

namespace isthmus::test {
namespace {

using ::testing::HasSubstr;

#define EXPECT_REFUSED(call, text)                 \
    do {                                           \
        EXPECT_EQ(call, isthmusInvalidArgument);   \
        EXPECT_THAT(lastError(), HasSubstr(text)); \
    } while (false)

class Arguments : public Alone {
protected:
    std::array<float, 4> in{1, 2, 3, 4};
    std::array<float, 4> out{};
    std::array<size_t, 1> four{4};
};

TEST_F(Arguments, NullCommunicatorIsRefusedByEveryCollective) {
    const std::string text = "communicator is null";
    const void* send = in.data();
    void* receive = out.data();
    const size_t* counts = four.data();
    const auto type = isthmusFloat32;
    EXPECT_REFUSED(isthmusAllReduce(send, receive, 4, type, isthmusSum, nullptr, nullptr, nullptr),
                   text);
    EXPECT_REFUSED(isthmusBroadcast(send, receive, 4, type, 0, nullptr, nullptr, nullptr), text);
    EXPECT_REFUSED(isthmusReduce(send, receive, 4, type, isthmusSum, 0, nullptr, nullptr, nullptr),
                   text);
    EXPECT_REFUSED(isthmusAllGather(send, receive, 4, type, nullptr, nullptr, nullptr), text);
    EXPECT_REFUSED(
        isthmusReduceScatter(send, receive, 4, type, isthmusSum, nullptr, nullptr, nullptr), text);
    EXPECT_REFUSED(isthmusAlltoAll(send, receive, 4, type, nullptr, nullptr, nullptr), text);
    EXPECT_REFUSED(isthmusGather(send, receive, 4, type, 0, nullptr, nullptr, nullptr), text);
    EXPECT_REFUSED(isthmusScatter(send, receive, 4, type, 0, nullptr, nullptr, nullptr), text);
    EXPECT_REFUSED(isthmusBarrier(nullptr, nullptr, nullptr), text);
    EXPECT_REFUSED(
        isthmusAllGatherV(send, 4, receive, counts, nullptr, type, nullptr, nullptr, nullptr),
        text);
    EXPECT_REFUSED(
        isthmusReduceScatterV(send, receive, counts, type, isthmusSum, nullptr, nullptr, nullptr),
        text);
    EXPECT_REFUSED(isthmusAlltoAllV(send, counts, nullptr, receive, counts, nullptr, type, nullptr,
                                    nullptr, nullptr),
                   text);
    EXPECT_REFUSED(isthmusSend(send, 4, type, 0, 0, nullptr, nullptr, nullptr), text);
    EXPECT_REFUSED(isthmusRecv(receive, 4, type, 0, 0, nullptr, nullptr, nullptr, nullptr), text);
}

TEST_F(Arguments, NullCommunicatorIsRefusedByEverythingElse) {
    int number = 0;
    isthmusResult_t cause = isthmusSuccess;
    isthmusComm_t child = nullptr;
    isthmusWireCounters_t counters{};
    counters.size = sizeof(counters);
    const std::string text = "communicator is null";
    EXPECT_REFUSED(isthmusCommCount(nullptr, &number), text);
    EXPECT_REFUSED(isthmusCommUserRank(nullptr, &number), text);
    EXPECT_REFUSED(isthmusCommNodes(nullptr, &number), text);
    EXPECT_REFUSED(isthmusCommSplit(nullptr, 0, 0, &child, nullptr), text);
    EXPECT_REFUSED(isthmusCommAbort(nullptr), text);
    EXPECT_REFUSED(isthmusCommAbortWithReason(nullptr, "why"), text);
    EXPECT_REFUSED(isthmusCommGetAsyncError(nullptr, &cause), text);
    EXPECT_REFUSED(isthmusWireCounters(nullptr, &counters), text);
    EXPECT_REFUSED(isthmusCardCounters(nullptr, nullptr, &number), text);
    EXPECT_REFUSED(isthmusProgress(nullptr), text);
    EXPECT_REFUSED(isthmusEventFd(nullptr, &number), text);
    EXPECT_REFUSED(isthmusCommFinalize(nullptr), text);
    EXPECT_EQ(isthmusCommDestroy(nullptr), isthmusSuccess) << "as free() does";
}

TEST_F(Arguments, NullPlacesForResultsAreRefused) {
    EXPECT_REFUSED(isthmusGetVersion(nullptr), "null");
    EXPECT_REFUSED(isthmusGetUniqueId(nullptr), "null");
    EXPECT_REFUSED(isthmusCommCount(comm(), nullptr), "null");
    EXPECT_REFUSED(isthmusCommUserRank(comm(), nullptr), "null");
    EXPECT_REFUSED(isthmusCommNodes(comm(), nullptr), "null");
    EXPECT_REFUSED(isthmusCommSplit(comm(), 0, 0, nullptr, nullptr), "null");
    EXPECT_REFUSED(isthmusCommGetAsyncError(comm(), nullptr), "null");
    EXPECT_REFUSED(isthmusWireCounters(comm(), nullptr), "null");
    EXPECT_REFUSED(isthmusEventFd(comm(), nullptr), "null");
    EXPECT_REFUSED(isthmusCommInitEnv(nullptr, nullptr), "null");
    EXPECT_REFUSED(isthmusMemAlloc(nullptr, 64), "null");
}

TEST_F(Arguments, NullBuffersAreRefusedUnlessNothingIsMoved) {
    const auto type = isthmusFloat32;
    EXPECT_REFUSED(
        isthmusAllReduce(nullptr, out.data(), 4, type, isthmusSum, comm(), nullptr, nullptr),
        "send buffer is null");
    EXPECT_REFUSED(
        isthmusAllReduce(in.data(), nullptr, 4, type, isthmusSum, comm(), nullptr, nullptr),
        "receive buffer is null");
    EXPECT_REFUSED(isthmusAllGather(in.data(), nullptr, 4, type, comm(), nullptr, nullptr),
                   "receive buffer is null");
    EXPECT_REFUSED(isthmusScatter(nullptr, out.data(), 4, type, 0, comm(), nullptr, nullptr),
                   "send buffer is null");
    EXPECT_REFUSED(isthmusSend(nullptr, 4, type, 0, 0, comm(), nullptr, nullptr), "null");
    EXPECT_REFUSED(isthmusRecv(nullptr, 4, type, 0, 0, nullptr, comm(), nullptr, nullptr), "null");
    EXPECT_EQ(isthmusAllReduce(nullptr, nullptr, 0, type, isthmusSum, comm(), nullptr, nullptr),
              isthmusSuccess);
    EXPECT_EQ(isthmusAlltoAll(nullptr, nullptr, 0, type, comm(), nullptr, nullptr), isthmusSuccess);
}

TEST_F(Arguments, ReductionsThatATypeHasNot) {
    EXPECT_REFUSED(isthmusAllReduce(in.data(), out.data(), 4, isthmusInt32, isthmusAvg, comm(),
                                    nullptr, nullptr),
                   "avg is not defined on i32");
    EXPECT_REFUSED(isthmusAllReduce(in.data(), out.data(), 4, isthmusFloat32, isthmusBxor, comm(),
                                    nullptr, nullptr),
                   "bxor is not defined on f32");
}

TEST_F(Arguments, RootsAndPeersOutsideTheCommunicator) {
    for (const int rank : {-1, 1, INT_MAX, INT_MIN}) {
        const std::string text = std::to_string(rank);
        EXPECT_REFUSED(isthmusBroadcast(in.data(), out.data(), 4, isthmusFloat32, rank, comm(),
                                        nullptr, nullptr),
                       "root " + text);
        EXPECT_REFUSED(
            isthmusGather(in.data(), out.data(), 4, isthmusFloat32, rank, comm(), nullptr, nullptr),
            "root " + text);
        EXPECT_REFUSED(isthmusSend(in.data(), 4, isthmusFloat32, rank, 0, comm(), nullptr, nullptr),
                       "peer " + text);
        if (rank == ISTHMUS_ANY_SOURCE) continue;
        EXPECT_REFUSED(
            isthmusRecv(out.data(), 4, isthmusFloat32, rank, 0, nullptr, comm(), nullptr, nullptr),
            "peer " + text);
    }
}

TEST_F(Arguments, NegativeTags) {
    for (const int tag : {-1, INT_MIN}) {
        const std::string text = "tag " + std::to_string(tag) + " is negative";
        EXPECT_REFUSED(isthmusSend(in.data(), 4, isthmusFloat32, 0, tag, comm(), nullptr, nullptr),
                       text);
        EXPECT_REFUSED(
            isthmusRecv(out.data(), 4, isthmusFloat32, 0, tag, nullptr, comm(), nullptr, nullptr),
            text);
    }
}

// More bytes than a buffer can have; products of count, ranks and element size must not wrap.
TEST_F(Arguments, CountsBeyondAnyBuffer) {
    const size_t eighth = SIZE_MAX / 8 + 2;  // times 8 it wraps to 8
    for (const size_t count : {SIZE_MAX, SIZE_MAX / 2, eighth}) {
        EXPECT_REFUSED(isthmusAllReduce(in.data(), out.data(), count, isthmusFloat64, isthmusSum,
                                        comm(), nullptr, nullptr),
                       "too large");
        EXPECT_REFUSED(isthmusAllGather(in.data(), out.data(), count, isthmusFloat64, comm(),
                                        nullptr, nullptr),
                       "too large");
        EXPECT_REFUSED(
            isthmusSend(in.data(), count, isthmusFloat64, 0, 0, comm(), nullptr, nullptr),
            "too large");
        EXPECT_REFUSED(isthmusAllGatherV(in.data(), count, out.data(), &count, nullptr,
                                         isthmusFloat64, comm(), nullptr, nullptr),
                       "too large");
        EXPECT_REFUSED(isthmusAlltoAllV(in.data(), &count, nullptr, out.data(), &count, nullptr,
                                        isthmusFloat64, comm(), nullptr, nullptr),
                       "too large");
    }
}

TEST_F(Arguments, CountListsOfTheVForms) {
    const size_t three = 3;
    EXPECT_REFUSED(isthmusAllGatherV(in.data(), 4, out.data(), nullptr, nullptr, isthmusFloat32,
                                     comm(), nullptr, nullptr),
                   "recvcounts");
    EXPECT_REFUSED(isthmusAllGatherV(in.data(), 4, out.data(), &three, nullptr, isthmusFloat32,
                                     comm(), nullptr, nullptr),
                   "sendcount 4");
    EXPECT_REFUSED(isthmusReduceScatterV(in.data(), out.data(), nullptr, isthmusFloat32, isthmusSum,
                                         comm(), nullptr, nullptr),
                   "recvcounts");
    EXPECT_REFUSED(isthmusAlltoAllV(in.data(), nullptr, nullptr, out.data(), four.data(), nullptr,
                                    isthmusFloat32, comm(), nullptr, nullptr),
                   "null");
    EXPECT_REFUSED(isthmusAlltoAllV(in.data(), four.data(), nullptr, out.data(), nullptr, nullptr,
                                    isthmusFloat32, comm(), nullptr, nullptr),
                   "null");
}

// What a rank sends itself it must also expect: no other rank can notice.
TEST_F(Arguments, ExchangeWithItselfOfTwoSizes) {
    const size_t three = 3;
    EXPECT_REFUSED(isthmusAlltoAllV(in.data(), four.data(), nullptr, out.data(), &three, nullptr,
                                    isthmusFloat32, comm(), nullptr, nullptr),
                   "sends itself 4 elements but expects 3");
}

TEST_F(Arguments, RanksOfAJobThatCannotBe) {
    isthmusComm_t made = nullptr;
    const auto gather = [](const void*, void*, size_t, void*) { return 0; };
    for (const auto& [ranks, rank] : {std::pair(0, 0), {-1, 0}, {2, 2}, {2, -1}, {INT_MIN, 0}}) {
        EXPECT_REFUSED(isthmusCommInitAllGather(&made, ranks, rank, gather, nullptr, nullptr),
                       "rank");
        EXPECT_EQ(made, nullptr);
    }
    EXPECT_REFUSED(isthmusCommInitAllGather(&made, 1, 0, nullptr, nullptr, nullptr), "null");
    EXPECT_REFUSED(isthmusCommInitStore(&made, 1, 0, nullptr, nullptr, nullptr), "store");
    EXPECT_EQ(made, nullptr);
}

TEST_F(Arguments, AnIdThatNobodyMade) {
    isthmusUniqueId nobodys;
    std::memset(&nobodys, 0x5a, sizeof(nobodys));
    isthmusComm_t made = nullptr;
    EXPECT_EQ(isthmusCommInitRank(&made, 2, nobodys, 1), isthmusInvalidArgument) << lastError();
    EXPECT_EQ(made, nullptr);
}

TEST_F(Arguments, RequestsThatAreNone) {
    isthmusRequest_t none = nullptr;
    int done = 0;
    EXPECT_REFUSED(isthmusTest(nullptr, &done), "null");
    EXPECT_REFUSED(isthmusTest(&none, nullptr), "null");
    EXPECT_REFUSED(isthmusWait(nullptr, 0), "null");
    EXPECT_REFUSED(isthmusWaitAll(1, nullptr, 0), "null");
    EXPECT_REFUSED(isthmusOnComplete(nullptr, nullptr, nullptr), "null");
    EXPECT_EQ(isthmusTest(&none, &done), isthmusSuccess);
    EXPECT_EQ(done, 1) << "a null request is done";
    EXPECT_EQ(isthmusWait(&none, 0), isthmusSuccess);
    EXPECT_EQ(isthmusWaitAll(1, &none, 0), isthmusSuccess);
    EXPECT_EQ(isthmusWaitAll(0, nullptr, 0), isthmusSuccess);
    EXPECT_EQ(isthmusRequestFree(nullptr), isthmusSuccess);
    EXPECT_EQ(isthmusRequestFree(&none), isthmusSuccess);
}

TEST_F(Arguments, AGroupEndsOnlyWhereOneBegan) {
    EXPECT_REFUSED(isthmusGroupEnd(), "isthmusGroupEnd without isthmusGroupStart");
}

TEST_F(Arguments, AWrongCallStartsNothingAndGivesNoRequest) {
    isthmusRequest_t request = reinterpret_cast<isthmusRequest_t>(out.data());
    EXPECT_REFUSED(isthmusAllReduce(in.data(), nullptr, 4, isthmusFloat32, isthmusSum, comm(),
                                    nullptr, &request),
                   "receive buffer is null");
    EXPECT_EQ(request, nullptr);
}

TEST_F(Arguments, AnAlgorithmThatDoesNotExist) {
    isthmusCallOptions_t options = ISTHMUS_CALL_OPTIONS_INITIALIZER;
    options.algorithm = "telepathy";
    EXPECT_REFUSED(isthmusAllReduce(in.data(), out.data(), 4, isthmusFloat32, isthmusSum, comm(),
                                    &options, nullptr),
                   "telepathy");
}

TEST_F(Arguments, MemoryThatIsNotOurs) {
    int local = 0;
    EXPECT_REFUSED(isthmusMemFree(&local), "");
    EXPECT_EQ(isthmusMemFree(nullptr), isthmusSuccess) << "as free() does";
    void* memory = nullptr;
    ASSERT_EQ(isthmusMemAlloc(&memory, 64), isthmusSuccess) << lastError();
    EXPECT_REFUSED(isthmusMemFree(static_cast<char*>(memory) + 1), "");
    EXPECT_EQ(isthmusMemFree(memory), isthmusSuccess);
    EXPECT_REFUSED(isthmusMemFree(memory), "");
    EXPECT_EQ(isthmusMemAlloc(&memory, SIZE_MAX), isthmusResource);
    EXPECT_EQ(memory, nullptr);
}

TEST(ErrorTexts, EveryCodeHasItsOwn) {
    std::set<std::string> texts;
    const std::array codes = {isthmusSuccess,       isthmusInvalidArgument, isthmusMismatch,
                              isthmusTimeout,       isthmusPeerLost,        isthmusAborted,
                              isthmusConfiguration, isthmusResource,        isthmusUnsupported,
                              isthmusInternalError};
    for (const isthmusResult_t code : codes) texts.insert(isthmusGetErrorString(code));
    EXPECT_EQ(texts.size(), codes.size());
    EXPECT_EQ(texts.count(""), 0U);
    EXPECT_STREQ(isthmusGetErrorString(static_cast<isthmusResult_t>(69)), "unknown result code");
}

TEST(ErrorTexts, AreOfOneThread) {
    EXPECT_REFUSED(isthmusGetVersion(nullptr), "version is null");
    std::string elsewhere = "unset";
    std::thread([&] { elsewhere = lastError(); }).join();
    EXPECT_EQ(elsewhere, "");
}

TEST(Version, IsThatOfTheHeader) {
    int version = 0;
    ASSERT_EQ(isthmusGetVersion(&version), isthmusSuccess);
    EXPECT_EQ(version, ISTHMUS_MAJOR * 10000 + ISTHMUS_MINOR * 100 + ISTHMUS_PATCH);
}

TEST_F(Arguments, MoreTensorsThanThereCanBe) {
    const void* send = in.data();
    void* receive = out.data();
    const std::size_t count = 1;
    EXPECT_REFUSED(isthmusAllReduceCoalesced(SIZE_MAX, &send, &receive, &count, isthmusFloat32,
                                             isthmusSum, comm(), nullptr, nullptr),
                   "tensors are too many");
}

// 266 and 512 are legal in their low eight bits.
TEST_F(Arguments, EnumsOutsideTheirRange) {
    for (const int value : {-1, 17, 255, 256, 266, INT_MAX, INT_MIN}) {
        const auto type = wild<isthmusDataType_t>(value);
        EXPECT_REFUSED(
            isthmusAllReduce(in.data(), out.data(), 1, type, isthmusSum, comm(), nullptr, nullptr),
            "data type " + std::to_string(value));
        EXPECT_REFUSED(isthmusAllGather(in.data(), out.data(), 1, type, comm(), nullptr, nullptr),
                       "data type " + std::to_string(value));
        EXPECT_REFUSED(isthmusSend(in.data(), 1, type, 0, 0, comm(), nullptr, nullptr),
                       "data type " + std::to_string(value));
    }
    for (const int value : {-1, 8, 255, 256, 512, INT_MAX, INT_MIN}) {
        const auto op = wild<isthmusRedOp_t>(value);
        EXPECT_REFUSED(isthmusAllReduce(in.data(), out.data(), 1, isthmusFloat32, op, comm(),
                                        nullptr, nullptr),
                       "reduction " + std::to_string(value));
        EXPECT_REFUSED(isthmusReduceScatter(in.data(), out.data(), 1, isthmusFloat32, op, comm(),
                                            nullptr, nullptr),
                       "reduction " + std::to_string(value));
    }
    EXPECT_STREQ(isthmusGetErrorString(wild<isthmusResult_t>(-1)), "unknown result code");
}

}  // namespace
}  // namespace isthmus::test
