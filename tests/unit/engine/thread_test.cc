// Which thread moves a call, and what an idle engine costs. Real threads and real time.
#include <gtest/gtest.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/support/local_job.hpp"
#include "tests/unit/communicator/calls.hpp"

namespace isthmus::test {
namespace {

using std::chrono::milliseconds;

Engine::Counters countersOf(Communicator& communicator) {
    Engine::Counters counters;
    Engine& engine = communicator.engine();
    engine.withToken([&] { counters = engine.counters(); });
    return counters;
}

// The progress thread looks at an idle engine every 2 ms, for a microsecond; a call that begins in
// that moment may go through its hands. That has to do with time, not with calls.
TEST(Threads, BlockingCallsOnAnIdleEngineChangeNone) {
    constexpr int kCalls = 2000;
    LocalJob job({0});
    job.run([](Rank, Communicator& communicator) {
        EXPECT_TRUE(sums(communicator));
        const Engine::Counters before = countersOf(communicator);
        for (int i = 0; i < kCalls; ++i) ASSERT_TRUE(sums(communicator));
        const Engine::Counters after = countersOf(communicator);
        EXPECT_LE(after.finishedByProgress - before.finishedByProgress, kCalls / 100);
        EXPECT_GE(after.finishedByCaller - before.finishedByCaller, kCalls * 99 / 100);
        EXPECT_LE(after.progressTurns - before.progressTurns, kCalls / 100);
    });
}

TEST(Threads, BlockingCallsOfManyRanksChangeNone) {
    constexpr int kCalls = 500;
    LocalJob job({0, 0, 1});
    job.run([](Rank rank, Communicator& communicator) {
        EXPECT_TRUE(sums(communicator));
        const Engine::Counters before = countersOf(communicator);
        for (int i = 0; i < kCalls; ++i) ASSERT_TRUE(sums(communicator));
        const Engine::Counters after = countersOf(communicator);
        EXPECT_LE(after.finishedByProgress - before.finishedByProgress, kCalls / 20) << rank;
        EXPECT_GE(after.finishedByCaller - before.finishedByCaller, kCalls * 19 / 20) << rank;
    });
}

TEST(Threads, CallsThatNobodyWaitsForAreTheProgressThreads) {
    LocalJob job({0, 0});
    std::atomic<int> ready{0};
    job.run([&](Rank rank, Communicator& communicator) {
        EXPECT_TRUE(sums(communicator));
        const Engine::Counters before = countersOf(communicator);
        // The second rank calls when the first one's call is under way already.
        if (rank == 1) {
            while (ready == 0) std::this_thread::sleep_for(milliseconds(1));
            std::this_thread::sleep_for(milliseconds(20));
        }
        std::vector<float> buffer(100'000, 1);
        const auto work = communicator.call(allReduceOf(buffer), {});
        ready = 1;
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
        while (!work->isDone() && std::chrono::steady_clock::now() < end) {
            std::this_thread::sleep_for(milliseconds(1));
        }
        ASSERT_TRUE(work->isDone());
        EXPECT_EQ(buffer, std::vector<float>(100'000, 2));
        const Engine::Counters after = countersOf(communicator);
        if (rank != 0) return;
        EXPECT_EQ(after.finishedByProgress - before.finishedByProgress, 1U);
        EXPECT_EQ(after.finishedByCaller, before.finishedByCaller);
    });
}

double processMilliseconds() {
    timespec used{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return static_cast<double>(used.tv_sec) * 1e3 + static_cast<double>(used.tv_nsec) / 1e6;
}

// All threads of four processes-in-spirit together: stricter than one of them. The first 100 ms are
// for what is still under way (ten looks of 2 ms before an engine rests).
TEST(Threads, OfAnIdleEngineUseNoProcessor) {
    LocalJob job({0, 0, 1, 1});
    job.run([](Rank rank, Communicator& communicator) {
        for (int i = 0; i < 10; ++i) EXPECT_TRUE(sums(communicator));
        std::this_thread::sleep_for(milliseconds(100));
        const double before = processMilliseconds();
        std::this_thread::sleep_for(milliseconds(300));
        EXPECT_LT(processMilliseconds() - before, 6.0) << "ms of 300, rank " << rank;
        std::this_thread::sleep_for(milliseconds(50));  // nobody leaves while others measure
    });
}

// Three ranks sleep in a call as the drivers of their engines until the fourth comes: nobody has to
// look at anything meanwhile. The first 100 ms are for going to sleep.
TEST(Threads, OfEnginesThatWaitForARankUseNoProcessor) {
    LocalJob job({0, 0, 0, 0});
    job.run([](Rank rank, Communicator& communicator) {
        for (int i = 0; i < 10; ++i) EXPECT_TRUE(sums(communicator));
        if (rank == 3) {
            std::this_thread::sleep_for(milliseconds(100));
            const double before = processMilliseconds();
            std::this_thread::sleep_for(milliseconds(400));
            EXPECT_LT(processMilliseconds() - before, 6.0) << "ms of 400";
        }
        EXPECT_TRUE(sums(communicator));
    });
}

}  // namespace
}  // namespace isthmus::test
