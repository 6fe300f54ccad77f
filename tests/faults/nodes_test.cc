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
TEST_F(Nodes, ASmallSharedMemoryFolderDoesNotMatter) {  // BOOT-08
    const std::string name = "faults-" + std::to_string(::getpid());
    ASSERT_EQ(isthmus({"cluster", "up", "1x2", "--shm", "1M", "--name", name}).exitCode, 0);
    const char* const tellSizeAndCall =
        "df -k --output=size /dev/shm | tail -1 | tr -d ' '; exec " RANK_PROGRAM " big 16";
    const Ended ended = isthmus({"run", "--on", name, "--", "sh", "-c", tellSizeAndCall});
    isthmus({"cluster", "down", "--name", name});
    EXPECT_EQ(ended.exitCode, 0) << ended.output << ended.error;
    for (const char* line : {"[0] 1024\n", "[1] 1024\n", "[0] done\n", "[1] done\n"}) {
        EXPECT_THAT(ended.output, HasSubstr(line));
    }
    EXPECT_EQ(ended.error, "");  // no warning that it goes another way
}

// The first rank of a node lets in what comes to or from the given ports, and nothing else; all run
// `program` behind that and print where their node listens meanwhile.
std::string scriptBehindAFirewall(const std::string& ports, const std::string& program) {
    return "if [ $LOCAL_RANK = 0 ]; then printf 'table inet fence {\\n chain in {\\n"
           " type filter hook input priority 0; policy drop;\\n iif lo accept\\n tcp dport " +
           ports + " accept\\n tcp sport " + ports +
           " accept\\n }\\n}\\n' | nft -f - || exit 9; fi; "
           "for i in $(seq 1000); do nft list table inet fence >/dev/null 2>&1 && break; sleep "
           "0.01; done; " +
           program + " & sleep 0.7; ss -lntH | awk '{print \"listens\", $4}'; wait $!";
}

// https://github.com/pytorch/gloo/issues/54
TEST_F(Nodes, AFirewallMayLeaveOpenTheRangeOfPortsAlone) {  // BOOT-14
    if (std::system("command -v nft >/dev/null && command -v ss >/dev/null") != 0)
        GTEST_SKIP() << "nft or ss is missing";
    constexpr int kFirst = 5000;
    constexpr int kLast = 5015;
    const std::string range = std::to_string(kFirst) + "-" + std::to_string(kLast);
    ::setenv("ISTHMUS_PORT_RANGE", range.c_str(), 1);  // for the store of the launcher as well
    const Ended ended = isthmus({"run", "--nodes", "2x4", "--", "sh", "-c",
                                 scriptBehindAFirewall(range, RANK_PROGRAM " loop 1500")});
    ::unsetenv("ISTHMUS_PORT_RANGE");
    ASSERT_EQ(ended.exitCode, 0) << ended.output << ended.error;
    int listeners = 0;
    for (const std::string& line : linesOf(ended.output)) {
        if (line.find("] listens ") == std::string::npos) continue;
        ++listeners;
        const int port = std::atoi(line.substr(line.rfind(':') + 1).c_str());
        EXPECT_TRUE(port >= kFirst && port <= kLast) << line;
    }
    EXPECT_GE(listeners, 8);
    for (int rank = 0; rank < 8; ++rank)
        EXPECT_THAT(ended.output, HasSubstr("[" + std::to_string(rank) + "] done"));
}

// https://github.com/aws-samples/aws-do-eks/pull/51
TEST_F(Nodes, EachMayNameItsCardInItsOwnWay) {  // BOOT-02
    for (const char* wishes :
         {"eth0 =eth0", "^lo eth", "10.77.0.0/24 ^lo,dummy0", "10.77.0.1 10.77.0.2"}) {
        const std::string script = std::string("set -- ") + wishes +
                                   "; [ $ISTHMUS_NODE = 0 ] || shift; ISTHMUS_INTERFACE=$1 "
                                   "exec " RANK_PROGRAM " once";
        const Ended ended = isthmus({"run", "--nodes", "2x1", "--", "sh", "-c", script});
        EXPECT_EQ(ended.exitCode, 0) << wishes << ended.output << ended.error;
    }
}

// https://github.com/aws-samples/aws-do-eks/pull/69
TEST_F(Nodes, WhereLoopbackAloneIsLeftEveryRankSaysSo) {  // BOOT-01, BOOT-02
    // A shell is each rank's process for the launcher, which would end the job at the first.
    for (const char* wish : {"lo", "^eth0"}) {
        const std::string script = std::string("ISTHMUS_INTERFACE='") + wish +
                                   "' ISTHMUS_TIMEOUT=8000 " RANK_PROGRAM
                                   " once; [ $? = 6 ] || exit 9; sleep 2";
        const Ended ended = isthmus({"run", "--nodes", "2x1", "--", "sh", "-c", script});
        EXPECT_EQ(ended.exitCode, 0) << ended.output << ended.error;
        EXPECT_THAT(ended.output, HasSubstr("loopback addresses for rank 1 (node1 "));
        for (const char* rank : {"[0] failed 6 making \"comm0\": rank 0 (node0 ",
                                 "[1] failed 6 making \"comm0\": rank 0 (node0 "}) {
            EXPECT_THAT(ended.output, HasSubstr(rank)) << wish;
        }
    }
}

}  // namespace
}  // namespace isthmus::test
