// Ranks that die on emulated nodes, and nodes whose memory is small. As root, or where the kernel
// lets users make namespaces; skipped with the reason elsewhere.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>

#include <isthmus/isthmus.h>

#include "tests/cluster/program.hpp"

namespace isthmus::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::HasSubstr;

class Nodes : public testing::Test {
protected:
    void SetUp() override {
        if (isthmusProgram().empty()) GTEST_SKIP() << "this build has no isthmus program";
        static const Ended tried = [] {
            const std::string name = "faults-probe-" + std::to_string(::getpid());
            const Ended up = isthmus({"cluster", "up", "1", "--name", name});
            if (up.exitCode == 0) isthmus({"cluster", "down", "--name", name});
            return up;
        }();
        if (tried.exitCode == 2)
            GTEST_SKIP() << "no emulated nodes on this machine: " << tried.error;
        ASSERT_EQ(tried.exitCode, 0) << tried.error;
    }
};

/// What `rank` printed after `beginning`, in the output of `isthmus run`; empty: nothing yet.
std::string said(const Program& job, int rank, const std::string& beginning) {
    std::string prefix = "[";
    prefix.append(std::to_string(rank)).append("] ").append(beginning);
    for (const std::string& line : linesOf(job.output())) {
        if (line.rfind(prefix, 0) == 0) return line.substr(prefix.size()) + " ";
    }
    return "";
}

// A shell is each rank's process for the launcher, which would end the job at the first that ends.
std::string scriptThatKills(int killed) {
    return "if [ $RANK != " + std::to_string(killed) +
           " ]; then " RANK_PROGRAM " loop; exec sleep 20; fi; " RANK_PROGRAM
           " loop & sleep 0.5; kill -9 $!; echo killed; wait; exec sleep 20";
}

// https://github.com/ml-explore/mlx/pull/4060
TEST_F(Nodes, ARankThatIsKilledIsNamedOnBothNodesWithinTwoSeconds) {  // HANG-01
    // The leader of the first node, its other rank, the leader of the second one.
    for (const int killed : {0, 1, 2}) {
        Program job(
            {isthmusProgram(), "run", "--nodes", "2x2", "--", "sh", "-c", scriptThatKills(killed)});
        ASSERT_TRUE(
            becomes([&] { return !said(job, killed, "killed").empty(); }, milliseconds(20000)))
            << job.output() << job.error();
        const auto start = steady_clock::now();
        for (int rank = 0; rank < 4; ++rank) {
            if (rank == killed) continue;
            EXPECT_TRUE(
                becomes([&] { return !said(job, rank, "failed ").empty(); }, milliseconds(2000)))
                << "rank " << rank << " of the job without " << killed;
            EXPECT_LT(steady_clock::now() - start, milliseconds(2000));
            const std::string text = said(job, rank, "failed ");
            EXPECT_THAT(text, HasSubstr("rank " + std::to_string(killed) + " (node" +
                                        std::to_string(killed / 2) + " "))
                << "at rank " << rank;
            EXPECT_EQ(text.rfind(std::to_string(isthmusPeerLost) + " ", 0), 0U) << text;
        }
        for (int rank = 0; rank < 4; ++rank) {
            if (rank == killed) continue;
            // Its last words, half a second later: nobody spins, everybody has ended.
            EXPECT_TRUE(
                becomes([&] { return !said(job, rank, "cpu ").empty(); }, milliseconds(5000)));
            EXPECT_LT(std::atoi(said(job, rank, "cpu ").c_str()), 30) << "of 300 ms";
        }
        job.signal(SIGTERM);
        EXPECT_GT(job.wait(milliseconds(15000)), 0);
    }
}

// Shared memory is a memory file, no file in /dev/shm: its size does not matter.
TEST_F(Nodes, ASmallSharedMemoryFolderDoesNotMatter) {
    const std::string name = "faults-" + std::to_string(::getpid());
    ASSERT_EQ(isthmus({"cluster", "up", "1x2", "--shm", "1M", "--name", name}).exitCode, 0);
    const Ended ended = isthmus(
        {"run", "--on", name, "--", "sh", "-c",
         "df -k --output=size /dev/shm | tail -1 | tr -d ' '; exec " RANK_PROGRAM " big 16"});
    isthmus({"cluster", "down", "--name", name});
    EXPECT_EQ(ended.exitCode, 0) << ended.output << ended.error;
    for (const char* line : {"[0] 1024\n", "[1] 1024\n", "[0] done\n", "[1] done\n"}) {
        EXPECT_THAT(ended.output, HasSubstr(line));
    }
    EXPECT_EQ(ended.error, "");  // no warning that it goes another way
}

}  // namespace
}  // namespace isthmus::test
