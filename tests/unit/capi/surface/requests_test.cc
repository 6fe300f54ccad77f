// Calls in flight: how they are waited for, left alone, given up and told about.
#include <gmock/gmock.h>
#include <poll.h>

#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "tests/unit/capi/surface/alone.hpp"

namespace isthmus::test {
namespace {

using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

/// A communicator that the test may ruin.
class Request : public ::testing::Test {
protected:
    void SetUp() override {
        isthmusConfig_t config = ISTHMUS_CONFIG_INITIALIZER;
        config.name = "short-lived";
        config.timeout_ms = 10000;
        ASSERT_EQ(isthmusCommInitEnv(&comm, &config), isthmusSuccess) << lastError();
    }
    void TearDown() override {
        if (comm == nullptr) return;
        EXPECT_EQ(isthmusCommDestroy(comm), isthmusSuccess) << lastError();
    }

    /// A receive that stays pending until somebody sends.
    isthmusRequest_t pending(const isthmusCallOptions_t* options = nullptr) {
        isthmusRequest_t request = nullptr;
        EXPECT_EQ(isthmusRecv(&received, 1, isthmusInt32, 0, 9, nullptr, comm, options, &request),
                  isthmusSuccess)
            << lastError();
        EXPECT_NE(request, nullptr);
        return request;
    }
    void feed() {
        const int value = 42;
        EXPECT_EQ(isthmusSend(&value, 1, isthmusInt32, 0, 9, comm, nullptr, nullptr),
                  isthmusSuccess)
            << lastError();
    }

    isthmusComm_t comm = nullptr;
    int received = 0;
    int feedToBeTaken = 0;
};

TEST_F(Request, TestSaysWhenItIsDone) {
    isthmusRequest_t request = pending();
    int done = 1;
    ASSERT_EQ(isthmusTest(&request, &done), isthmusSuccess);
    EXPECT_EQ(done, 0);
    EXPECT_NE(request, nullptr);
    feed();
    const auto limit = Clock::now() + std::chrono::seconds(5);
    while (done == 0 && Clock::now() < limit) {
        ASSERT_EQ(isthmusTest(&request, &done), isthmusSuccess) << lastError();
    }
    EXPECT_EQ(done, 1);
    EXPECT_EQ(request, nullptr);
    EXPECT_EQ(received, 42);
}

TEST_F(Request, WaitGivesUpAtItsLimitAndTheCallGoesOn) {
    isthmusRequest_t request = pending();
    EXPECT_EQ(isthmusWait(&request, 0), isthmusTimeout);
    const auto start = Clock::now();
    EXPECT_EQ(isthmusWait(&request, 30), isthmusTimeout);
    EXPECT_GE(Clock::now() - start, std::chrono::milliseconds(30));
    ASSERT_NE(request, nullptr);
    feed();
    EXPECT_EQ(isthmusWait(&request, -1), isthmusSuccess) << lastError();
    EXPECT_EQ(received, 42);
}

TEST_F(Request, WaitAllGivesUpAtOneLimitForAll) {
    std::array<isthmusRequest_t, 4> requests{};
    for (auto& request : requests) request = pending();
    const auto start = Clock::now();
    EXPECT_EQ(isthmusWaitAll(requests.size(), requests.data(), 50), isthmusTimeout);
    EXPECT_LT(Clock::now() - start, std::chrono::milliseconds(50 * 3)) << "not one limit each";
    for (std::size_t i = 0; i < requests.size(); ++i) feed();
    EXPECT_EQ(isthmusWaitAll(requests.size(), requests.data(), 5000), isthmusSuccess)
        << lastError();
}

struct Seen {
    std::atomic<int> calls{0};
    std::atomic<int> result{-1};
    std::string text;
};

void note(isthmusResult_t result, const char* text, void* context) {
    auto* seen = static_cast<Seen*>(context);
    seen->text = text;
    seen->result = result;
    seen->calls.fetch_add(1);
}

void expectCalledOnce(const Seen& seen) {
    const auto limit = Clock::now() + std::chrono::seconds(5);
    while (seen.calls.load() == 0 && Clock::now() < limit) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(seen.calls.load(), 1);
}

TEST_F(Request, CallbackRunsOnceWithoutAnybodyWaiting) {
    Seen seen;
    isthmusRequest_t request = pending();
    ASSERT_EQ(isthmusOnComplete(request, note, &seen), isthmusSuccess);
    EXPECT_EQ(seen.calls.load(), 0);
    feed();
    expectCalledOnce(seen);
    EXPECT_EQ(seen.result, isthmusSuccess);
    EXPECT_EQ(seen.text, "");
    EXPECT_EQ(isthmusWait(&request, -1), isthmusSuccess);
    EXPECT_EQ(seen.calls.load(), 1);
}

TEST_F(Request, CallbackOfADoneCallRunsAtOnce) {
    Seen seen;
    isthmusRequest_t request = nullptr;
    ASSERT_EQ(isthmusBarrier(comm, nullptr, &request), isthmusSuccess);
    ASSERT_NE(request, nullptr);
    int fd = -1;
    ASSERT_EQ(isthmusEventFd(comm, &fd), isthmusSuccess) << lastError();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ASSERT_EQ(isthmusOnComplete(request, note, &seen), isthmusSuccess);
    expectCalledOnce(seen);
    EXPECT_EQ(isthmusRequestFree(&request), isthmusSuccess);
}

TEST_F(Request, WaitingInsideACallbackIsRefusedInsteadOfHanging) {
    struct Inner {
        isthmusComm_t comm;
        Seen seen;
        std::atomic<int> waited{-1};
    } inner{comm, {}, {}};
    isthmusRequest_t request = pending();
    ASSERT_EQ(isthmusOnComplete(
                  request,
                  [](isthmusResult_t, const char*, void* context) {
                      auto* mine = static_cast<Inner*>(context);
                      mine->waited = isthmusBarrier(mine->comm, nullptr, nullptr);
                      mine->seen.calls.fetch_add(1);
                  },
                  &inner),
              isthmusSuccess);
    feed();
    expectCalledOnce(inner.seen);
    EXPECT_EQ(inner.waited, isthmusInvalidArgument);
    EXPECT_EQ(isthmusWait(&request, -1), isthmusSuccess);
}

TEST_F(Request, LettingGoLetsTheCallGoOn) {
    isthmusRequest_t request = pending();
    ASSERT_EQ(isthmusRequestFree(&request), isthmusSuccess);
    EXPECT_EQ(request, nullptr);
    feed();
    const auto limit = Clock::now() + std::chrono::seconds(5);
    const volatile int& seen = received;
    while (seen != 42 && Clock::now() < limit) ASSERT_EQ(isthmusProgress(comm), isthmusSuccess);
    EXPECT_EQ(received, 42);
}

TEST_F(Request, EventFdWakesALoopOfTheCaller) {
    int fd = -1;
    ASSERT_EQ(isthmusEventFd(comm, &fd), isthmusSuccess) << lastError();
    ASSERT_GE(fd, 0);
    isthmusRequest_t request = pending();
    std::thread sender([this] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        feed();
    });
    int done = 0;
    const auto limit = Clock::now() + std::chrono::seconds(5);
    while (done == 0 && Clock::now() < limit) {
        pollfd waiting{fd, POLLIN, 0};
        ASSERT_GE(::poll(&waiting, 1, 5000), 0);
        ASSERT_EQ(isthmusProgress(comm), isthmusSuccess);
        ASSERT_EQ(isthmusTest(&request, &done), isthmusSuccess) << lastError();
    }
    sender.join();
    EXPECT_EQ(done, 1);
    EXPECT_EQ(received, 42);
}

TEST_F(Request, ADeadlineEndsACallThatNobodyAnswers) {
    isthmusCallOptions_t options = ISTHMUS_CALL_OPTIONS_INITIALIZER;
    options.timeout_ms = 50;
    options.name = "lonely";
    isthmusRequest_t request = pending(&options);
    const auto start = Clock::now();
    EXPECT_EQ(isthmusWait(&request, -1), isthmusTimeout);
    EXPECT_THAT(lastError(), HasSubstr("50 ms"));
    EXPECT_THAT(lastError(), HasSubstr("lonely"));
    EXPECT_LT(Clock::now() - start, std::chrono::seconds(3));
    EXPECT_EQ(request, nullptr);
}

TEST_F(Request, AbortEndsCallsInFlightAndAllLaterOnes) {
    Seen seen;
    isthmusRequest_t request = pending();
    ASSERT_EQ(isthmusOnComplete(request, note, &seen), isthmusSuccess);
    ASSERT_EQ(isthmusCommAbort(comm), isthmusSuccess);
    EXPECT_EQ(isthmusWait(&request, 5000), isthmusAborted);
    const std::string cause = lastError();
    EXPECT_NE(cause, "");
    expectCalledOnce(seen);
    EXPECT_EQ(seen.result, isthmusAborted);
    EXPECT_EQ(isthmusBarrier(comm, nullptr, nullptr), isthmusAborted) << "revoked";
    isthmusResult_t failure = isthmusSuccess;
    ASSERT_EQ(isthmusCommGetAsyncError(comm, &failure), isthmusSuccess);
    EXPECT_EQ(failure, isthmusAborted);
    EXPECT_NE(lastError(), "");
}

TEST_F(Request, DestroyEndsCallsInFlightWithinTheTimeout) {
    isthmusComm_t brief = nullptr;
    isthmusConfig_t config = ISTHMUS_CONFIG_INITIALIZER;
    config.timeout_ms = 100;
    ASSERT_EQ(isthmusCommInitEnv(&brief, &config), isthmusSuccess) << lastError();
    isthmusRequest_t request = nullptr;
    ASSERT_EQ(isthmusRecv(&received, 1, isthmusInt32, 0, 9, nullptr, brief, nullptr, &request),
              isthmusSuccess);
    Seen seen;
    ASSERT_EQ(isthmusOnComplete(request, note, &seen), isthmusSuccess);
    ASSERT_EQ(isthmusRequestFree(&request), isthmusSuccess);
    const auto start = Clock::now();
    (void)isthmusCommDestroy(brief);
    EXPECT_LT(Clock::now() - start, std::chrono::seconds(3));
    expectCalledOnce(seen);
    EXPECT_NE(seen.result, isthmusSuccess);
}

TEST_F(Request, ThatOutlivesItsCommunicatorTellsHowItEnded) {
    feedToBeTaken = 42;
    isthmusRequest_t sent = nullptr;
    ASSERT_EQ(isthmusSend(&feedToBeTaken, 1, isthmusInt32, 0, 9, comm, nullptr, &sent),
              isthmusSuccess);
    isthmusRequest_t taken = pending();
    isthmusCallOptions_t again = ISTHMUS_CALL_OPTIONS_INITIALIZER;
    again.persistent = 1;
    isthmusRequest_t later = pending(&again);
    ASSERT_EQ(isthmusCommDestroy(std::exchange(comm, nullptr)), isthmusSuccess) << lastError();
    EXPECT_EQ(isthmusWait(&taken, 1000), isthmusSuccess) << lastError();
    EXPECT_EQ(received, 42);
    int done = 0;
    EXPECT_EQ(isthmusTest(&sent, &done), isthmusSuccess) << lastError();
    EXPECT_EQ(done, 1);
    EXPECT_EQ(isthmusStart(later), isthmusInvalidArgument);
    EXPECT_THAT(lastError(), HasSubstr("destroyed"));
    EXPECT_EQ(isthmusRequestFree(&later), isthmusSuccess);
}

// CASES NUM-26 is about ranks that disagree; with itself a rank can disagree on a message's size.
TEST_F(Request, PersistentOneOutlivesItsCommunicatorAndStartsNoMore) {
    isthmusCallOptions_t options = ISTHMUS_CALL_OPTIONS_INITIALIZER;
    options.persistent = 1;
    const int value = 42;
    isthmusRequest_t request = nullptr;
    ASSERT_EQ(
        isthmusAllReduce(&value, &received, 1, isthmusInt32, isthmusSum, comm, &options, &request),
        isthmusSuccess);
    ASSERT_EQ(isthmusStart(request), isthmusSuccess);
    ASSERT_EQ(isthmusCommDestroy(comm), isthmusSuccess);
    comm = nullptr;
    EXPECT_EQ(isthmusWait(&request, 5000), isthmusSuccess) << lastError();
    EXPECT_EQ(received, 42);
    EXPECT_EQ(isthmusStart(request), isthmusInvalidArgument);
    EXPECT_THAT(lastError(), HasSubstr("the communicator was destroyed"));
    EXPECT_EQ(isthmusRequestFree(&request), isthmusSuccess);
}

TEST_F(Request, MessageOfAnotherSizeIsAMismatch) {
    const std::array<int, 2> values{1, 2};
    isthmusRequest_t request = pending();
    isthmusRequest_t send = nullptr;
    ASSERT_EQ(isthmusSend(values.data(), 2, isthmusInt32, 0, 9, comm, nullptr, &send),
              isthmusSuccess);
    EXPECT_EQ(isthmusWait(&request, 5000), isthmusMismatch);
    EXPECT_THAT(lastError(), HasSubstr("8"));
    EXPECT_THAT(lastError(), HasSubstr("4"));
    EXPECT_EQ(received, 0) << "nothing was written";
    (void)isthmusWait(&send, 5000);
}

}  // namespace
}  // namespace isthmus::test
