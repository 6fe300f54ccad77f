// Ranks that die, stop, or end without a word in the middle of a job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <string>
#include <thread>

#include <isthmus/isthmus.h>

#include "tests/faults/job.hpp"

namespace isthmus::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::HasSubstr;
using testing::StartsWith;

Variables overSharedMemory(bool isShared) {
    return {{"ISTHMUS_SHM", isShared ? "1" : "0"}};
}

class Lost : public testing::TestWithParam<bool> {};

INSTANTIATE_TEST_SUITE_P(Ways, Lost, testing::Bool(),
                         [](const auto& test) { return test.param ? "Shared" : "Tcp"; });

// https://github.com/ml-explore/mlx/pull/4060
TEST_P(Lost, RankThatIsKilledIsNamedByAllWithinTwoSeconds) {  // HANG-01
    for (int killed = 0; killed < 4; ++killed) {
        Job job(4, {"loop"}, overSharedMemory(GetParam()));
        job.start();
        ASSERT_TRUE(job.allSay("ready"));
        std::this_thread::sleep_for(milliseconds(30 + 17 * killed));
        const std::string name = "rank " + std::to_string(killed) + " (";
        const auto start = steady_clock::now();
        job.rank(killed).signal(SIGKILL);
        ASSERT_EQ(job.rank(killed).wait(), 128 + SIGKILL);
        for (int rank = 0; rank < 4; ++rank) {
            if (rank == killed) continue;
            EXPECT_TRUE(becomes([&] { return !lineOf(job.rank(rank), "failed ").empty(); },
                                milliseconds(2000)));
            EXPECT_LT(steady_clock::now() - start, milliseconds(2000));
            const std::string text = lineOf(job.rank(rank), "failed ");
            EXPECT_THAT(text, StartsWith(std::to_string(isthmusPeerLost) + " "));
            EXPECT_THAT(text, HasSubstr(name)) << "at rank " << rank;
        }
        for (int rank = 0; rank < 4; ++rank) {
            if (rank == killed) continue;
            ASSERT_EQ(job.rank(rank).wait(milliseconds(5000)), isthmusPeerLost)
                << "rank " << rank << ": " << job.rank(rank).output() << job.rank(rank).error();
            // What comes later fails at once with the first cause; nobody spins.
            EXPECT_EQ(lineOf(job.rank(rank), "then "), lineOf(job.rank(rank), "failed "));
            EXPECT_LT(std::stoi("0" + lineOf(job.rank(rank), "cpu ")), 30) << "of 300 ms";
        }
    }
}

// https://github.com/jax-ml/jax/issues/38503
TEST_P(Lost, RankThatIsStuckIsNamedAtTheDeadlineAndHearsOfIt) {  // HANG-03
    Variables variables = overSharedMemory(GetParam());
    variables["ISTHMUS_TIMEOUT"] = "1000";
    Job job(4, {"loop"}, variables);
    job.start();
    ASSERT_TRUE(job.allSay("ready"));
    std::this_thread::sleep_for(milliseconds(50));
    const auto start = steady_clock::now();
    job.rank(3).signal(SIGSTOP);
    for (int rank = 0; rank < 3; ++rank) {
        EXPECT_TRUE(becomes([&] { return !lineOf(job.rank(rank), "failed ").empty(); },
                            milliseconds(3000)));
        const std::string text = lineOf(job.rank(rank), "failed ");
        EXPECT_THAT(text, StartsWith(std::to_string(isthmusTimeout) + " ")) << "at rank " << rank;
        EXPECT_THAT(text, HasSubstr("gave up on rank 3 (")) << "at rank " << rank;
    }
    EXPECT_GE(steady_clock::now() - start, milliseconds(900));
    job.rank(3).signal(SIGCONT);
    EXPECT_EQ(job.rank(3).wait(milliseconds(5000)), isthmusTimeout);
    EXPECT_THAT(lineOf(job.rank(3), "failed "), HasSubstr("gave up on rank 3 ("));
    for (int rank = 0; rank < 3; ++rank) {
        EXPECT_EQ(job.rank(rank).wait(milliseconds(5000)), isthmusTimeout);
    }
}

TEST_P(Lost, RankThatStopsForLessThanTheLimitDoesNoHarm) {  // HANG-03
    Job job(4, {"loop", "1500"}, overSharedMemory(GetParam()));
    job.start();
    ASSERT_TRUE(job.allSay("ready"));
    job.rank(3).signal(SIGSTOP);
    std::this_thread::sleep_for(milliseconds(700));
    job.rank(3).signal(SIGCONT);
    for (int rank = 0; rank < 4; ++rank) {
        EXPECT_EQ(job.rank(rank).wait(milliseconds(10000)), 0) << lineOf(job.rank(rank), "failed ");
    }
}

// A window that stays closed is no lost connection: the limit is that of the calls.
TEST(LostConnection, IsNoneWhileTheSystemOfAStoppedRankAnswers) {  // HANG-03
    Job job(2, {"stops", "1", "300", "3500", "7", "1500", "4194304"},
            {{"ISTHMUS_SHM", "0"}, {"ISTHMUS_TCP_USER_TIMEOUT", "1000"}}, STRESS_PROGRAM);
    job.start();
    for (int rank = 0; rank < 2; ++rank) {
        EXPECT_EQ(job.rank(rank).wait(milliseconds(30000)), 0)
            << job.rank(rank).output() << job.rank(rank).error();
    }
}

// https://github.com/pytorch/pytorch/pull/179291
TEST_P(Lost, RanksMayEndWithoutDestroying) {  // HANG-08
    for (const char* way : {"0", "1", "2", "3"}) {
        Job job(3, {"leave", way}, overSharedMemory(GetParam()));
        job.start();
        for (int rank = 0; rank < 3; ++rank) {
            EXPECT_EQ(job.rank(rank).wait(milliseconds(10000)), 0) << "way " << way;
            EXPECT_LE(linesOf(job.rank(rank).error()).size(), 1u) << job.rank(rank).error();
        }
    }
}

// https://github.com/openucx/ucx/issues/1566
TEST_P(Lost, ForkedChildHearsThatItCannotAndItsParentGoesOn) {  // HANG-10
    Job job(2, {"fork"}, overSharedMemory(GetParam()));
    job.start();
    for (int rank = 0; rank < 2; ++rank) {
        EXPECT_EQ(job.rank(rank).wait(milliseconds(15000)), 0) << job.rank(rank).output();
        EXPECT_THAT(lineOf(job.rank(rank), "child "),
                    testing::AllOf(StartsWith(std::to_string(isthmusAborted)), HasSubstr("fork")));
        EXPECT_THAT(lineOf(job.rank(rank), "child made "),
                    testing::AllOf(StartsWith(std::to_string(isthmusAborted)), HasSubstr("fork")));
        EXPECT_EQ(lineOf(job.rank(rank), "child ended "), "0");
    }
}

// https://github.com/open-mpi/ompi/issues/7308
TEST(LeftOvers, AreNoneAfterAllRanksWereKilled) {  // BOOT-10
    const auto listing = [] {
        std::string text;
        for (const char* folder : {"/dev/shm", "/tmp"}) {
            Program list({"sh", "-c", std::string("ls -A ") + folder + " | grep -i isthmus"});
            (void)list.wait();
            text += list.output();
        }
        return text;
    };
    const std::string before = listing();
    for (int run = 0; run < 5; ++run) {
        Job job(4, {"loop"});
        job.start();
        if (run > 0) {
            ASSERT_TRUE(job.allSay("ready"));
        }
        for (int rank = 0; rank < 4; ++rank) job.rank(rank).signal(SIGKILL);
        for (int rank = 0; rank < 4; ++rank) (void)job.rank(rank).wait();
    }
    EXPECT_EQ(listing(), before);
}

}  // namespace
}  // namespace isthmus::test
