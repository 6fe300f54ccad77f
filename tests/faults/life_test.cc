// Worlds and groups that are made, dropped, overlapped, forked and left, again and again. All
// repetitions: TESTS_WHOLE=1 in the environment.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <isthmus/isthmus.h>

#include "tests/faults/job.hpp"

namespace isthmus::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class Life : public testing::TestWithParam<bool> {
protected:
    Variables variables() const { return {{"ISTHMUS_SHM", GetParam() ? "1" : "0"}}; }

    std::unique_ptr<Job> run(const char* program, int ranks, const std::vector<std::string>& words,
                             Variables more = {}, milliseconds limit = seconds(100)) const {
        more.merge(variables());
        auto job = std::make_unique<Job>(ranks, words, more, program);
        job->start();
        for (int rank = 0; rank < ranks; ++rank) {
            const int code = job->rank(rank).wait(limit);
            EXPECT_EQ(code, 0) << "rank " << rank << ": " << job->rank(rank).output()
                               << job->rank(rank).error();
        }
        return job;
    }

    static void expectNothingGrew(Program& rank, long mostKilobytes) {
        int fds = 1;
        int threads = 1;
        const std::string grown = lineOf(rank, "grew ");
        ASSERT_EQ(std::sscanf(grown.c_str(), "fds %d threads %d", &fds, &threads), 2);
        // The store of an id goes when the next id is made: two may be there, with six each.
        EXPECT_LE(fds, 12);
        EXPECT_LE(threads, 2);
        EXPECT_LT(std::stol("0" + lineOf(rank, "kilobytes ")), mostKilobytes);
    }
};

INSTANTIATE_TEST_SUITE_P(Ways, Life, testing::Bool(),
                         [](const auto& test) { return test.param ? "Shared" : "Tcp"; });

TEST_P(Life, WorldsMadeByUniqueIdsLeaveNothingBehind) {
    const auto job = run(GROUP_PROGRAM, 2, {"worlds", std::to_string(countOf(60, 1000))});
    for (int rank = 0; rank < 2; ++rank) expectNothingGrew(job->rank(rank), 2048);
}

// https://github.com/NVIDIA/nccl/issues/1936
TEST_P(Life, TheWorldOfTheEnvironmentMayBeMadeAgain) {
    (void)run(GROUP_PROGRAM, 3, {"again", std::to_string(countOf(20, 1000))});
}

TEST_P(Life, GroupsMayBeDropped) {
    (void)run(GROUP_PROGRAM, 3, {"drops", "100"});
}

// https://github.com/NVIDIA/nccl/issues/195
TEST_P(Life, GroupsOverlapInEveryOrder) {  // PERF-11
    // All of them: a minute on two processors.
    const int turns = countOf(GetParam() ? 200 : 100, 25000);
    (void)run(GROUP_PROGRAM, 4, {"overlaps", std::to_string(turns), "3"}, {}, seconds(200));
}

TEST_P(Life, OneRankFarAheadCostsBoundedMemory) {
    const auto job = run(GROUP_PROGRAM, 3, {"ahead", std::to_string(countOf(2000, 20000))});
    for (int rank = 0; rank < 3; ++rank) {
        // Rank 0 has all its calls in a queue: 1 KB each at most.
        EXPECT_LT(std::stol("0" + lineOf(job->rank(rank), "ahead kilobytes ")), 40000);
        EXPECT_LT(std::stol("0" + lineOf(job->rank(rank), "kilobytes ")), 8192);
    }
}

// https://github.com/pytorch/pytorch/issues/7702, https://github.com/pytorch/pytorch/issues/16144
TEST_P(Life, SizesThatVaryCostNoMemory) {  // PERF-01
    const auto job = run(GROUP_PROGRAM, 3, {"sizes", std::to_string(countOf(400, 10000))});
    for (int rank = 0; rank < 3; ++rank) {
        for (const std::string& line : linesOf(job->rank(rank).output())) {
            int bytes = 0;
            if (std::sscanf(line.c_str(), "bytes a call %d", &bytes) == 1) {
                // Of few calls a page here and there counts.
                EXPECT_LT(bytes, countOf(500, 100));
            }
        }
    }
}

// https://github.com/pytorch/gloo/issues/35
TEST_P(Life, ManyGroupsShareThreadsAndConnections) {  // PERF-13
    const auto job = run(GROUP_PROGRAM, 4, {"many", "64"});
    for (int rank = 0; rank < 4; ++rank) {
        int fds = 99;
        int threads = 99;
        const std::string grown = lineOf(job->rank(rank), "grew ");
        ASSERT_EQ(std::sscanf(grown.c_str(), "fds %d threads %d", &fds, &threads), 2);
        EXPECT_LE(fds, 9);  // three a peer
        EXPECT_LE(threads, 8);
        EXPECT_LT(std::stol("0" + lineOf(job->rank(rank), "made in ")), 5000);
    }
}

// https://github.com/NVIDIA/nccl/issues/479, https://github.com/open-mpi/ompi/issues/6258
TEST_P(Life, ExchangesNeedNoOrder) {  // PERF-09
    (void)run(GROUP_PROGRAM, 3, {"exchanges"});
}

// https://github.com/ray-project/ray/pull/4318, https://github.com/pytorch/pytorch/pull/128739
TEST_P(Life, SmallCallsWaitForNoAcknowledgement) {  // PERF-05
    const auto job = run(GROUP_PROGRAM, 2, {"paces", "1000"});
    for (int rank = 0; rank < 2; ++rank) {
        EXPECT_LT(std::stoi("0" + lineOf(job->rank(rank), "median ")), 5000);
        EXPECT_LT(std::stoi("0" + lineOf(job->rank(rank), "late ")), 50);
    }
}

// https://github.com/openucx/ucx/issues/1566
TEST_P(Life, ForksWhileCallsAreInFlight) {  // HANG-10
    (void)run(STRESS_PROGRAM, 3, {"forks", std::to_string(countOf(30, 200))});
}

// https://github.com/pytorch/pytorch/pull/179291
TEST_P(Life, ABarrierMayBeTheLastThing) {  // HANG-08
    for (int run = 0; run < countOf(25, 500); ++run) {
        Job job(3, {"leaves", std::to_string(run)}, variables(), STRESS_PROGRAM);
        job.start();
        for (int rank = 0; rank < 3; ++rank) {
            ASSERT_EQ(job.rank(rank).wait(milliseconds(20000)), 0)
                << "run " << run << " rank " << rank << ": " << job.rank(rank).output()
                << job.rank(rank).error();
            ASSERT_EQ(job.rank(rank).error(), "") << "run " << run << " rank " << rank;
        }
    }
}

// https://github.com/open-mpi/ompi/issues/10426
TEST_P(Life, AWaitingRankCostsNothing) {  // PERF-03
    const int wait = countOf(2000, 20000);
    const auto job = run(STRESS_PROGRAM, 3, {"waits", std::to_string(wait)});
    for (int rank = 1; rank < 3; ++rank) {
        EXPECT_LT(std::stoi("0" + lineOf(job->rank(rank), "permille ")), 20);
        EXPECT_GT(std::stoi("0" + lineOf(job->rank(rank), "milliseconds ")), wait / 2);
    }
}

TEST_P(Life, AnInterruptEndsABlockedRankAtOnce) {
    Job job(2, {"waits", "20000"}, variables(), STRESS_PROGRAM);
    job.start();
    ASSERT_TRUE(job.allSay("ready"));
    std::this_thread::sleep_for(milliseconds(200));
    for (int rank = 0; rank < 2; ++rank) job.rank(rank).signal(SIGINT);
    for (int rank = 0; rank < 2; ++rank)
        EXPECT_EQ(job.rank(rank).wait(milliseconds(1000)), 128 + SIGINT);
}

}  // namespace
}  // namespace isthmus::test
