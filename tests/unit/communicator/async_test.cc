// Calls that go on while their caller does something else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/support/local_job.hpp"
#include "tests/unit/communicator/calls.hpp"

namespace isthmus::test {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

const std::vector<int> kMixed = {0, 0, 1};

TEST(AsyncCalls, RunFiftyAtOnceInOrderOfPriorityOrNot) {
    LocalJob job(kMixed);
    job.run([](Rank rank, Communicator& communicator) {
        constexpr int kCalls = 50;
        std::vector<std::vector<float>> buffers;
        std::vector<std::shared_ptr<Work>> works;
        for (int i = 0; i < kCalls; ++i) {
            const std::size_t elements = 1 + static_cast<std::size_t>(i) * 211;
            buffers.emplace_back(elements, static_cast<float>(rank + i));
        }
        for (int i = 0; i < kCalls; ++i) {
            CallOptions options;
            options.priority = i % 8;
            works.push_back(communicator.call(allReduceOf(buffers[i]), options));
        }
        for (int i = kCalls - 1; i >= 0; --i) {
            ASSERT_TRUE(endOf(communicator, works[i]).ok()) << works[i]->status().what();
            EXPECT_EQ(buffers[i],
                      std::vector<float>(buffers[i].size(), static_cast<float>(3 * i + 3)));
        }
    });
}

TEST(AsyncCalls, GetDoneWithoutAnybodyWaiting) {
    LocalJob job(kMixed);
    job.run([](Rank, Communicator& communicator) {
        std::vector<float> buffer(100000, 1);
        const auto work = communicator.call(allReduceOf(buffer), {});
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
        while (!work->isDone() && std::chrono::steady_clock::now() < end) {
            std::this_thread::sleep_for(milliseconds(1));
        }
        ASSERT_TRUE(work->isDone());
        EXPECT_EQ(buffer, std::vector<float>(100000, 3));
    });
}

TEST(AsyncCalls, WaitGivesUpAtItsLimitAndTheCallGoesOn) {
    LocalJob job(kMixed);
    job.run([](Rank rank, Communicator& communicator) {
        if (rank == 2) std::this_thread::sleep_for(milliseconds(200));
        std::vector<float> buffer(100, 1);
        const auto work = communicator.call(allReduceOf(buffer), {});
        if (rank != 2) {
            const Status early = communicator.wait(*work, milliseconds(20));
            EXPECT_EQ(early.code(), Status::Code::kTimeout);
            EXPECT_THAT(early.what(), HasSubstr("20 ms"));
        }
        EXPECT_TRUE(endOf(communicator, work).ok());
        EXPECT_EQ(buffer, std::vector<float>(100, 3));
    });
}

TEST(AsyncCalls, TellTheirCallbackOnceWhenTheBytesAreThere) {
    LocalJob job(kMixed);
    job.run([](Rank, Communicator& communicator) {
        std::vector<float> buffer(5000, 1);
        std::atomic<int> told{0};
        std::atomic<bool> hadBytes{false};
        const auto work = communicator.call(allReduceOf(buffer), {});
        work->onComplete([&](const Status& status) {
            hadBytes = status.ok() && buffer == std::vector<float>(5000, 3);
            ++told;
        });
        EXPECT_TRUE(endOf(communicator, work).ok());
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
        while (told == 0 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
        EXPECT_EQ(told, 1);
        EXPECT_TRUE(hadBytes);
        work->onComplete([&](const Status&) { ++told; });  // done already: at once
        EXPECT_EQ(told, 2);
    });
}

TEST(AsyncCalls, RefuseToWaitInsideACallbackButStartMore) {
    LocalJob job(kMixed);
    job.run([](Rank, Communicator& communicator) {
        std::vector<float> first(10, 1);
        std::vector<float> second(10, 1);
        std::vector<float> third(10, 1);
        Status inWait;
        Status inCall;
        std::shared_ptr<Work> started;
        std::atomic<bool> isOver{false};
        const auto work = communicator.call(allReduceOf(first), {});
        work->onComplete([&](const Status&) {
            started = communicator.call(allReduceOf(second), {});
            // Elsewhere when the call was over before: then it may wait, and others may not.
            if (communicator.engine().isOnThisThread()) {
                inWait = communicator.wait(*started, milliseconds(0));
                inCall = communicator.call(allReduceOf(third), blocking())->status();
            }
            isOver = true;
        });
        EXPECT_TRUE(endOf(communicator, work).ok());
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
        while (!isOver && std::chrono::steady_clock::now() < end) std::this_thread::yield();
        ASSERT_TRUE(isOver);
        ASSERT_TRUE(endOf(communicator, started).ok());
        EXPECT_EQ(second, std::vector<float>(10, 3));
        if (inWait.ok()) return;  // the callback ran at once: nothing to refuse
        EXPECT_EQ(inWait.code(), Status::Code::kInvalidArgument);
        EXPECT_EQ(inCall.code(), Status::Code::kInvalidArgument);
        EXPECT_THAT(inWait.what(), HasSubstr("callback"));
    });
}

// https://github.com/pytorch/pytorch/issues/132696
TEST(AsyncCalls, AreFinishedByDestruction) {  // HANG-05
    LocalJob job({0, 0, 1, 1});
    job.run([](Rank rank, Communicator& communicator) {
        constexpr std::size_t kCount = 1 << 18;
        std::vector<std::vector<float>> buffers(
            8, std::vector<float>(kCount, static_cast<float>(rank)));
        std::vector<std::shared_ptr<Work>> works;
        auto part = communicator.split(0, 0, {});
        ASSERT_TRUE(part.ok());
        for (auto& buffer : buffers) works.push_back((*part)->call(allReduceOf(buffer), {}));
        part->reset();
        for (const auto& work : works) {
            ASSERT_TRUE(work->isDone());
            ASSERT_TRUE(work->status().ok()) << work->status().what();
        }
        for (const auto& buffer : buffers) EXPECT_EQ(buffer, std::vector<float>(kCount, 6));
    });
}

TEST(AsyncCalls, FailByTheLimitWhenDestructionWaitsForNobody) {  // HANG-05
    LocalJob job({0, 0, 1});
    job.run([](Rank rank, Communicator& communicator) {
        CommunicatorConfig config;
        config.name = "part";
        config.timeout = milliseconds(300);
        auto part = communicator.split(0, 0, config);
        ASSERT_TRUE(part.ok());
        if (rank == 2) {
            EXPECT_TRUE(sums(communicator));  // keeps its part, never calls
            return;
        }
        std::vector<float> buffer(1000, 1);
        const auto work = (*part)->call(allReduceOf(buffer), {});
        const auto start = std::chrono::steady_clock::now();
        part->reset();
        EXPECT_LT(std::chrono::steady_clock::now() - start, milliseconds(1500));
        ASSERT_TRUE(work->isDone());
        EXPECT_EQ(work->status().code(), Status::Code::kTimeout) << work->status().what();
        EXPECT_TRUE(sums(communicator));
    });
}

TEST(AsyncCalls, MakeTheEventReadable) {
    LocalJob job(kMixed);
    job.run([](Rank rank, Communicator& communicator) {
        const auto event = communicator.eventDescriptor();
        ASSERT_TRUE(event.ok());
        pollfd watched{*event, POLLIN, 0};
        EXPECT_EQ(::poll(&watched, 1, 0), 0);
        if (rank == 2) std::this_thread::sleep_for(milliseconds(50));
        std::vector<float> buffer(100, 1);
        const auto work = communicator.call(allReduceOf(buffer), {});
        while (!work->isDone()) ASSERT_EQ(::poll(&watched, 1, 5000), 1);
        std::uint64_t count = 0;
        EXPECT_EQ(::read(*event, &count, sizeof(count)), 8);
    });
}

}  // namespace
}  // namespace isthmus::test
