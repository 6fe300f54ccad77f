// Many calls, many communicators: nothing may grow, mix up or stop.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include <isthmus/isthmus.h>

#include "tests/faults/job.hpp"

namespace isthmus::test {
namespace {

using std::chrono::milliseconds;

class LongRun : public testing::TestWithParam<bool> {
protected:
    Variables variables() const { return {{"ISTHMUS_SHM", GetParam() ? "1" : "0"}}; }

    void expectAllEndWell(Job& job, milliseconds limit) {
        for (int rank = 0; rank < job.ranks(); ++rank) {
            ASSERT_EQ(job.rank(rank).wait(limit), 0)
                << "rank " << rank << ": " << job.rank(rank).output() << job.rank(rank).error();
        }
    }
};

INSTANTIATE_TEST_SUITE_P(Ways, LongRun, testing::Bool(),
                         [](const auto& test) { return test.param ? "Shared" : "Tcp"; });

// https://github.com/openucx/ucc/issues/541
TEST_P(LongRun, MixedCallsWithChangingRootsAreNeverConfused) {  // NUM-23
    Job job(4, {"mixed", GetParam() ? "20000" : "4000"}, variables());
    job.start();
    expectAllEndWell(job, milliseconds(55000));
}

TEST_P(LongRun, CommunicatorsLeaveNothingBehind) {
    Job job(4, {"many", "300"}, variables());
    job.start();
    expectAllEndWell(job, milliseconds(30000));
    for (int rank = 0; rank < 4; ++rank) {
        int fds = 1;
        int threads = 1;
        const std::string grown = lineOf(job.rank(rank), "grew ");
        ASSERT_EQ(std::sscanf(grown.c_str(), "fds %d threads %d", &fds, &threads), 2);
        EXPECT_LE(fds, 0);
        EXPECT_LE(threads, 0);
        EXPECT_LT(std::stol("0" + lineOf(job.rank(rank), "kilobytes ")), 1024);
    }
}

}  // namespace
}  // namespace isthmus::test
