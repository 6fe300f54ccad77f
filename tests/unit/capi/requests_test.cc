// Requests of the C API: waiting for one of many, taking back, starting again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "tests/support/local_job.hpp"
#include "tests/unit/capi/comm_of.hpp"

namespace isthmus::test {
namespace {

using testing::HasSubstr;

constexpr int kGo = 99;  // the tag by which one rank tells another to go on

void tell(isthmusComm_t comm, int peer) {
    ASSERT_EQ(isthmusSend(nullptr, 0, isthmusInt, peer, kGo, comm, nullptr, nullptr),
              isthmusSuccess);
}

void hear(isthmusComm_t comm, int peer) {
    ASSERT_EQ(isthmusRecv(nullptr, 0, isthmusInt, peer, kGo, nullptr, comm, nullptr, nullptr),
              isthmusSuccess);
}

isthmusRequest_t receive(isthmusComm_t comm, std::vector<int>& into, int peer, int tag) {
    isthmusRequest_t request = nullptr;
    EXPECT_EQ(isthmusRecv(into.data(), into.size(), isthmusInt, peer, tag, nullptr, comm, nullptr,
                          &request),
              isthmusSuccess);
    return request;
}

void send(isthmusComm_t comm, const std::vector<int>& values, int peer, int tag) {
    ASSERT_EQ(
        isthmusSend(values.data(), values.size(), isthmusInt, peer, tag, comm, nullptr, nullptr),
        isthmusSuccess);
}

class Requests : public testing::TestWithParam<std::vector<int>> {};

INSTANTIATE_TEST_SUITE_P(Over, Requests,
                         testing::Values(std::vector<int>{0, 0}, std::vector<int>{0, 1}),
                         [](const auto& test) {
                             return std::string(test.param.back() == 0 ? "OneNode" : "TwoNodes");
                         });

TEST_P(Requests, WaitAnyGivesThemAsTheyEndAndThenNone) {
    LocalJob job(GetParam());
    job.run([](Rank rank, Communicator& communicator) {
        CommOf comm(communicator);
        if (rank == 1) {
            hear(comm, 0);
            send(comm, {22}, 0, 2);
            hear(comm, 0);
            send(comm, {11}, 0, 1);
            return;
        }
        std::vector<int> one(1, -1);
        std::vector<int> two(1, -1);
        isthmusRequest_t requests[] = {nullptr, receive(comm, one, 1, 1), receive(comm, two, 1, 2)};
        std::size_t index = 0;
        for (const std::int64_t limit : {0, 20}) {
            EXPECT_EQ(isthmusWaitAny(3, requests, &index, limit), isthmusTimeout);
            EXPECT_EQ(index, ISTHMUS_UNDEFINED);
        }
        tell(comm, 1);
        ASSERT_EQ(isthmusWaitAny(3, requests, &index, -1), isthmusSuccess);
        EXPECT_EQ(index, 2u);
        EXPECT_EQ(two, std::vector<int>{22});
        EXPECT_EQ(requests[2], nullptr);
        tell(comm, 1);
        ASSERT_EQ(isthmusWaitAny(3, requests, &index, 10000), isthmusSuccess);
        EXPECT_EQ(index, 1u);
        EXPECT_EQ(one, std::vector<int>{11});
        EXPECT_EQ(isthmusWaitAny(3, requests, &index, -1), isthmusSuccess);
        EXPECT_EQ(index, ISTHMUS_UNDEFINED);
        EXPECT_EQ(isthmusWaitAny(0, nullptr, &index, -1), isthmusSuccess);
    });
}

TEST_P(Requests, OfReceivesCanBeTakenBackAndTheNextOnesMoveUp) {
    LocalJob job(GetParam());
    job.run([](Rank rank, Communicator& communicator) {
        CommOf comm(communicator);
        if (rank == 1) {
            hear(comm, 0);
            for (const int value : {1, 2, 3}) send(comm, {value}, 0, 5);
            return;
        }
        std::vector<std::vector<int>> values(5, std::vector<int>(1, -1));
        std::vector<isthmusRequest_t> requests;
        requests.reserve(values.size());
        for (auto& value : values) requests.push_back(receive(comm, value, 1, 5));
        for (const int which : {1, 3}) {
            ASSERT_EQ(isthmusCancel(requests[which]), isthmusSuccess) << lastError();
            EXPECT_EQ(isthmusWait(&requests[which], -1), isthmusAborted);
            EXPECT_THAT(lastError(), HasSubstr("recv tag 5"));
            EXPECT_THAT(lastError(), HasSubstr("was cancelled"));
        }
        tell(comm, 1);
        EXPECT_EQ(isthmusWaitAll(requests.size(), requests.data(), -1), isthmusSuccess);
        const std::vector<std::vector<int>> wanted = {{1}, {-1}, {2}, {-1}, {3}};
        EXPECT_EQ(values, wanted);
    });
}

TEST_P(Requests, OfAnySourceAndToOneselfCanBeTakenBackWhateverTheirSize) {
    LocalJob job(GetParam());
    job.run([](Rank rank, Communicator& communicator) {
        CommOf comm(communicator);
        constexpr std::size_t kLarge = 100003;
        if (rank == 1) {
            hear(comm, 0);
            send(comm, std::vector<int>(kLarge, 8), 0, 4);
            return;
        }
        std::vector<int> gone(kLarge, -1);
        std::vector<int> stays(kLarge, -1);
        isthmusRequest_t first = receive(comm, gone, ISTHMUS_ANY_SOURCE, 4);
        isthmusRequest_t second = receive(comm, stays, ISTHMUS_ANY_SOURCE, 4);
        isthmusRequest_t self = receive(comm, gone, 0, 4);
        for (isthmusRequest_t* request : {&first, &self}) {
            ASSERT_EQ(isthmusCancel(*request), isthmusSuccess) << lastError();
            EXPECT_EQ(isthmusWait(request, -1), isthmusAborted);
        }
        tell(comm, 1);
        EXPECT_EQ(isthmusWait(&second, -1), isthmusSuccess);
        EXPECT_EQ(stays, std::vector<int>(kLarge, 8));
        EXPECT_EQ(gone, std::vector<int>(kLarge, -1));
    });
}

TEST_P(Requests, ThatOthersCountOnGoOn) {
    LocalJob job(GetParam());
    job.run([](Rank rank, Communicator& communicator) {
        CommOf comm(communicator);
        std::vector<float> sum(1000, static_cast<float>(rank));
        if (rank == 1) {
            hear(comm, 0);
            ASSERT_EQ(isthmusAllReduce(sum.data(), sum.data(), sum.size(), isthmusFloat, isthmusSum,
                                       comm, nullptr, nullptr),
                      isthmusSuccess);
            EXPECT_EQ(sum, std::vector<float>(1000, 1));
            send(comm, std::vector<int>(100003, 6), 0, 6);
            return;
        }
        isthmusRequest_t collective = nullptr;
        ASSERT_EQ(isthmusAllReduce(sum.data(), sum.data(), sum.size(), isthmusFloat, isthmusSum,
                                   comm, nullptr, &collective),
                  isthmusSuccess);
        EXPECT_EQ(isthmusCancel(collective), isthmusInvalidArgument);
        EXPECT_THAT(lastError(), HasSubstr("other ranks count on this call"));
        std::vector<int> large(100003);
        isthmusRequest_t told = receive(comm, large, 1, 6);
        int done = 1;
        EXPECT_EQ(isthmusTest(&told, &done), isthmusSuccess);
        EXPECT_EQ(done, 0);
        // A receive of this length has begun once room for it was offered to the sender; whoever
        // drives the engine does that.
        for (int turn = 0; turn < 10; ++turn) {
            EXPECT_EQ(isthmusProgress(comm), isthmusSuccess);
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        EXPECT_EQ(isthmusCancel(told), isthmusInvalidArgument);
        EXPECT_THAT(lastError(), HasSubstr("recv tag 6"));
        EXPECT_THAT(lastError(), HasSubstr("has begun"));
        tell(comm, 1);
        EXPECT_EQ(isthmusWait(&collective, -1), isthmusSuccess);
        EXPECT_EQ(sum, std::vector<float>(1000, 1));
        EXPECT_EQ(isthmusWait(&told, -1), isthmusSuccess);
        EXPECT_EQ(large, std::vector<int>(100003, 6));
        EXPECT_EQ(isthmusCancel(nullptr), isthmusInvalidArgument);
    });
}

TEST_P(Requests, ThatPersistStartAgainWithWhatTheirBuffersHoldThen) {
    LocalJob job(GetParam());
    job.run([](Rank rank, Communicator& communicator) {
        CommOf comm(communicator);
        const isthmusCallOptions_t options = persistent();
        std::vector<double> input(3);
        std::vector<double> output(3);
        isthmusRequest_t sum = nullptr;
        isthmusRequest_t gather = nullptr;
        ASSERT_EQ(isthmusAllReduce(input.data(), output.data(), 3, isthmusDouble, isthmusSum, comm,
                                   &options, &sum),
                  isthmusSuccess);
        const std::vector<std::size_t> counts = {1, 2};
        const std::vector<std::size_t> places = {3, 0};
        std::vector<double> all(4, -1);
        ASSERT_EQ(isthmusGatherV(input.data(), counts[rank], all.data(), counts.data(),
                                 places.data(), isthmusDouble, 0, comm, &options, &gather),
                  isthmusSuccess);
        EXPECT_EQ(isthmusWait(&sum, -1), isthmusSuccess);  // inactive: nothing to wait for
        for (int turn = 0; turn < 5; ++turn) {
            input.assign(3, turn + 10.0 * rank);
            isthmusRequest_t both[] = {sum, gather};
            ASSERT_EQ(isthmusStartAll(2, both), isthmusSuccess) << lastError();
            EXPECT_EQ(isthmusStart(sum), isthmusInvalidArgument);
            EXPECT_THAT(lastError(), HasSubstr("started before"));
            ASSERT_EQ(isthmusBarrier(comm, nullptr, nullptr), isthmusSuccess);
            std::size_t index = 0;
            for (int ended = 0; ended < 2; ++ended)
                ASSERT_EQ(isthmusWaitAny(2, both, &index, -1), isthmusSuccess);
            ASSERT_EQ(isthmusWaitAny(2, both, &index, -1), isthmusSuccess);
            EXPECT_EQ(index, ISTHMUS_UNDEFINED);
            EXPECT_EQ(output, std::vector<double>(3, 2 * turn + 10.0));
            const std::vector<double> gathered = {turn + 10.0, turn + 10.0, -1, turn + 0.0};
            EXPECT_EQ(all, rank == 0 ? gathered : std::vector<double>(4, -1));
        }
        for (isthmusRequest_t* request : {&sum, &gather}) {
            EXPECT_NE(*request, nullptr);
            EXPECT_EQ(isthmusRequestFree(request), isthmusSuccess);
            EXPECT_EQ(*request, nullptr);
        }
    });
}

TEST_P(Requests, ThatPersistAreSendsReceivesAndSumsOfProductsToo) {
    LocalJob job(GetParam());
    job.run([](Rank rank, Communicator& communicator) {
        CommOf comm(communicator);
        const isthmusCallOptions_t options = persistent();
        int value = 0;
        int source = -1;
        isthmusRequest_t transfer = nullptr;
        if (rank == 0) {
            ASSERT_EQ(isthmusSend(&value, 1, isthmusInt, 1, 3, comm, &options, &transfer),
                      isthmusSuccess);
        } else {
            ASSERT_EQ(isthmusRecv(&value, 1, isthmusInt, ISTHMUS_ANY_SOURCE, 3, &source, comm,
                                  &options, &transfer),
                      isthmusSuccess);
        }
        float factor = 0.5f;
        isthmusRedOp_t op = isthmusSum;
        ASSERT_EQ(isthmusRedOpCreatePreMulSum(&op, &factor, isthmusFloat,
                                              isthmusScalarHostImmediate, comm),
                  isthmusSuccess);
        float number = 0;
        float halves = 0;
        isthmusRequest_t sum = nullptr;
        ASSERT_EQ(isthmusAllReduce(&number, &halves, 1, isthmusFloat, op, comm, &options, &sum),
                  isthmusSuccess);
        for (int turn = 1; turn <= 3; ++turn) {
            value = rank == 0 ? 100 * turn : -1;
            number = static_cast<float>(turn);
            ASSERT_EQ(isthmusStart(transfer), isthmusSuccess);
            ASSERT_EQ(isthmusStart(sum), isthmusSuccess);
            ASSERT_EQ(isthmusWait(&sum, -1), isthmusSuccess);
            ASSERT_EQ(isthmusWait(&transfer, -1), isthmusSuccess);
            EXPECT_EQ(value, 100 * turn);
            EXPECT_EQ(source, rank == 0 ? -1 : 0);
            EXPECT_EQ(halves, static_cast<float>(turn));
        }
        (void)isthmusRequestFree(&transfer);
        (void)isthmusRequestFree(&sum);
    });
}

TEST(Persistence, IsRefusedWhereItMeansNothing) {
    LocalJob job({0});
    job.run([](Rank, Communicator& communicator) {
        CommOf comm(communicator);
        const isthmusCallOptions_t options = persistent();
        int value = 5;
        EXPECT_EQ(
            isthmusAllReduce(&value, &value, 1, isthmusInt, isthmusSum, comm, &options, nullptr),
            isthmusInvalidArgument);
        EXPECT_EQ(lastError(), "a persistent call needs a request");
        isthmusRequest_t request = nullptr;
        EXPECT_EQ(
            isthmusAllReduce(&value, &value, 1, isthmusInt, isthmusAvg, comm, &options, &request),
            isthmusInvalidArgument);
        EXPECT_THAT(lastError(), HasSubstr("all_reduce: avg is not defined on i32"));
        EXPECT_EQ(request, nullptr);
        ASSERT_EQ(
            isthmusAllReduce(&value, &value, 1, isthmusInt, isthmusSum, comm, nullptr, &request),
            isthmusSuccess);
        EXPECT_EQ(isthmusStart(request), isthmusInvalidArgument);
        EXPECT_EQ(lastError(), "start: the request is not persistent");
        EXPECT_EQ(isthmusWait(&request, -1), isthmusSuccess);
        EXPECT_EQ(isthmusStart(nullptr), isthmusInvalidArgument);
        EXPECT_EQ(value, 5);
    });
}

}  // namespace
}  // namespace isthmus::test
