// Exchanges with neighbours, and what groups of calls promise.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/support/local_job.hpp"
#include "tests/unit/capi/comm_of.hpp"

namespace isthmus::test {
namespace {

using testing::HasSubstr;

isthmusNeighbors_t neighborsOf(const std::vector<int>& sources,
                               const std::vector<int>& destinations) {
    return {static_cast<int>(sources.size()), sources.data(), static_cast<int>(destinations.size()),
            destinations.data()};
}

TEST(Neighbors, GiveARingItsHalo) {
    LocalJob job({0, 0, 1, 1, 2}, {}, LocalJob::Wires::kReal);
    job.run([](Rank rank, Communicator& communicator) {
        CommOf comm(communicator);
        const int left = (rank + 4) % 5;
        const int right = (rank + 1) % 5;
        const std::vector<int> both = {left, right};
        const isthmusNeighbors_t neighbors = neighborsOf(both, both);
        for (const std::size_t count : {0, 1, 1000, 100003}) {
            std::vector<int> send(count, 10 * rank + 1);  // leftwards
            send.resize(2 * count, 10 * rank + 2);        // rightwards
            std::vector<int> receive(2 * count, -1);
            ASSERT_EQ(isthmusNeighborAlltoAll(send.data(), receive.data(), count, isthmusInt,
                                              &neighbors, comm, nullptr, nullptr),
                      isthmusSuccess)
                << lastError();
            std::vector<int> wanted(count, 10 * left + 2);
            wanted.resize(2 * count, 10 * right + 1);
            ASSERT_EQ(receive, wanted);
        }
    });
}

/// Edges 0 -> 1 twice, 1 -> 1, 2 -> 0, of 2, 0, 3 and 1 elements; rank 3 has none.
TEST(Neighbors, AreAnyGraphWithDoubledEdgesAndSelfInPlacesOfTheCaller) {
    LocalJob job({0, 0, 1, 1});
    job.run([](Rank rank, Communicator& communicator) {
        CommOf comm(communicator);
        const std::vector<std::vector<int>> sources = {{2}, {0, 1, 0}, {}, {}};
        const std::vector<std::vector<int>> destinations = {{1, 1}, {1}, {0}, {}};
        const std::vector<std::vector<std::size_t>> arriving = {{1}, {2, 3, 0}, {}, {}};
        const std::vector<std::vector<std::size_t>> leaving = {{2, 0}, {3}, {1}, {}};
        const std::vector<std::size_t> places = {5, 0, 4};  // of rank 1
        const isthmusNeighbors_t neighbors = neighborsOf(sources[rank], destinations[rank]);
        const std::vector<double> send = {rank + 0.25, rank + 0.5, rank + 0.75};
        std::vector<double> receive(7, -1);
        for (int turn = 0; turn < 3; ++turn) {
            ASSERT_EQ(
                isthmusNeighborAlltoAllV(send.data(), leaving[rank].data(), nullptr, receive.data(),
                                         arriving[rank].data(), rank == 1 ? places.data() : nullptr,
                                         isthmusDouble, &neighbors, comm, nullptr, nullptr),
                isthmusSuccess)
                << lastError();
        }
        const std::vector<std::vector<double>> wanted = {{2.25, -1, -1, -1, -1, -1, -1},
                                                         {1.25, 1.5, 1.75, -1, -1, 0.25, 0.5},
                                                         std::vector<double>(7, -1),
                                                         std::vector<double>(7, -1)};
        EXPECT_EQ(receive, wanted[rank]);
    });
}

TEST(Neighbors, ExchangeBesideUsersMessagesAndAgainWhenPersistent) {
    LocalJob job({0, 1});
    job.run([](Rank rank, Communicator& communicator) {
        CommOf comm(communicator);
        const int other = 1 - rank;
        const isthmusNeighbors_t neighbors = {1, &other, 1, &other};
        int mine = 0;
        int theirs = -1;
        const isthmusCallOptions_t options = persistent();
        isthmusRequest_t exchange = nullptr;
        ASSERT_EQ(isthmusNeighborAlltoAll(&mine, &theirs, 1, isthmusInt, &neighbors, comm, &options,
                                          &exchange),
                  isthmusSuccess);
        int anybodys = -1;
        isthmusRequest_t receive = nullptr;
        ASSERT_EQ(isthmusRecv(&anybodys, 1, isthmusInt, ISTHMUS_ANY_SOURCE, 0, nullptr, comm,
                              nullptr, &receive),
                  isthmusSuccess);
        for (mine = 5 + rank; mine < 9; mine += 2) {
            ASSERT_EQ(isthmusStart(exchange), isthmusSuccess);
            ASSERT_EQ(isthmusWait(&exchange, -1), isthmusSuccess) << lastError();
            EXPECT_EQ(theirs, rank == 0 ? mine + 1 : mine - 1);
        }
        const int last = 70 + rank;
        ASSERT_EQ(isthmusSend(&last, 1, isthmusInt, other, 0, comm, nullptr, nullptr),
                  isthmusSuccess);
        ASSERT_EQ(isthmusWait(&receive, -1), isthmusSuccess);
        EXPECT_EQ(anybodys, 71 - rank);  // nothing else was for it
        EXPECT_EQ(isthmusRequestFree(&exchange), isthmusSuccess);
    });
}

TEST(Neighbors, ThatDoNotExistAreRefusedBeforeAnythingStarts) {
    LocalJob job({0, 0});
    job.run([](Rank rank, Communicator& communicator) {
        CommOf comm(communicator);
        int value = rank;
        for (const int nobody : {-1, 2}) {
            const int peers[] = {1 - rank, nobody};
            const isthmusNeighbors_t neighbors = {2, peers, 2, peers};
            int both[2] = {};
            EXPECT_EQ(isthmusNeighborAlltoAll(both, both, 1, isthmusInt, &neighbors, comm, nullptr,
                                              nullptr),
                      isthmusInvalidArgument);
            EXPECT_THAT(lastError(), HasSubstr("neighbor_all_to_all"));
            EXPECT_THAT(lastError(), HasSubstr(std::to_string(nobody) + " is not a rank"));
        }
        const int other = 1 - rank;
        const isthmusNeighbors_t neighbors = {1, &other, 1, &other};
        EXPECT_EQ(isthmusNeighborAlltoAll(nullptr, &value, 1, isthmusInt, &neighbors, comm, nullptr,
                                          nullptr),
                  isthmusInvalidArgument);
        EXPECT_EQ(lastError(), "neighbor_all_to_all: destination: the buffer is null");
        EXPECT_EQ(
            isthmusNeighborAlltoAll(&value, &value, 1, isthmusInt, nullptr, comm, nullptr, nullptr),
            isthmusInvalidArgument);
        const isthmusNeighbors_t broken = {-1, nullptr, 0, nullptr};
        EXPECT_EQ(
            isthmusNeighborAlltoAll(&value, &value, 1, isthmusInt, &broken, comm, nullptr, nullptr),
            isthmusInvalidArgument);
        int theirs = -1;
        EXPECT_EQ(isthmusNeighborAlltoAll(&value, &theirs, 1, isthmusInt, &neighbors, comm, nullptr,
                                          nullptr),
                  isthmusSuccess);
        EXPECT_EQ(theirs, other);
    });
}

TEST(Group, OfNothingSucceedsAndNestedOnesEndWithTheOutermost) {
    LocalJob job({0, 1});
    job.run([](Rank rank, Communicator& communicator) {
        CommOf comm(communicator);
        EXPECT_EQ(isthmusGroupStart(), isthmusSuccess);
        EXPECT_EQ(isthmusGroupEnd(), isthmusSuccess);
        int mine = rank;
        int theirs = -1;
        // Receive first on both sides: outside of a group they would wait for each other.
        EXPECT_EQ(isthmusGroupStart(), isthmusSuccess);
        EXPECT_EQ(isthmusGroupStart(), isthmusSuccess);
        EXPECT_EQ(isthmusRecv(&theirs, 1, isthmusInt, 1 - rank, 0, nullptr, comm, nullptr, nullptr),
                  isthmusSuccess);
        EXPECT_EQ(isthmusGroupEnd(), isthmusSuccess);
        EXPECT_EQ(isthmusSend(&mine, 1, isthmusInt, 1 - rank, 0, comm, nullptr, nullptr),
                  isthmusSuccess);
        EXPECT_EQ(isthmusGroupEnd(), isthmusSuccess) << lastError();
        EXPECT_EQ(theirs, 1 - rank);
    });
}

TEST(Group, EndsWithTheFirstFailureInsideAndServesTheOthers) {
    LocalJob job({0, 1});
    job.run([](Rank rank, Communicator& communicator) {
        CommOf comm(communicator);
        int value = rank + 1;
        int other = rank + 1;
        isthmusRequest_t request = nullptr;
        EXPECT_EQ(isthmusGroupStart(), isthmusSuccess);
        EXPECT_EQ(
            isthmusAllReduce(&value, &value, 1, isthmusInt, isthmusSum, comm, nullptr, nullptr),
            isthmusSuccess);
        EXPECT_EQ(isthmusBroadcast(&value, &value, 1, isthmusInt, 7, comm, nullptr, nullptr),
                  isthmusInvalidArgument);
        EXPECT_EQ(isthmusAllReduce(&value, &value, 1, static_cast<isthmusDataType_t>(99),
                                   isthmusSum, comm, nullptr, nullptr),
                  isthmusInvalidArgument);
        EXPECT_EQ(
            isthmusAllReduce(&other, &other, 1, isthmusInt, isthmusSum, comm, nullptr, &request),
            isthmusSuccess);
        EXPECT_EQ(isthmusGroupEnd(), isthmusInvalidArgument);
        EXPECT_THAT(lastError(), HasSubstr("root 7 is not a rank"));
        EXPECT_EQ(value, 3);
        EXPECT_EQ(isthmusWait(&request, -1), isthmusSuccess);
        EXPECT_EQ(other, 3);
        // The next group knows nothing of it.
        EXPECT_EQ(isthmusGroupStart(), isthmusSuccess);
        EXPECT_EQ(isthmusBarrier(comm, nullptr, nullptr), isthmusSuccess);
        EXPECT_EQ(isthmusGroupEnd(), isthmusSuccess);
    });
}

TEST(Group, MayHaveCallsOfSeveralCommunicators) {
    LocalJob job({0, 0, 1, 1});
    job.run([](Rank rank, Communicator& communicator) {
        CommOf comm(communicator);
        isthmusComm_t pair = nullptr;
        ASSERT_EQ(isthmusCommSplit(comm, rank % 2, rank, &pair, nullptr), isthmusSuccess)
            << lastError();
        int all = 1;
        int half = 1;
        EXPECT_EQ(isthmusGroupStart(), isthmusSuccess);
        // One way round here, the other there: blocking calls would wait for each other.
        for (const bool isWhole : {rank % 2 == 0, rank % 2 != 0}) {
            int& value = isWhole ? all : half;
            EXPECT_EQ(isthmusAllReduce(&value, &value, 1, isthmusInt, isthmusSum,
                                       isWhole ? static_cast<isthmusComm_t>(comm) : pair, nullptr,
                                       nullptr),
                      isthmusSuccess);
        }
        EXPECT_EQ(isthmusGroupEnd(), isthmusSuccess) << lastError();
        EXPECT_EQ(all, 4);
        EXPECT_EQ(half, 2);
        EXPECT_EQ(isthmusCommDestroy(pair), isthmusSuccess);
    });
}

}  // namespace
}  // namespace isthmus::test
