// Ranks with little of something: they work, or every one ends in time and says what is short.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <string>

#include <isthmus/isthmus.h>

#include "tests/faults/job.hpp"

namespace isthmus::test {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;

/// A soft limit of this process, which those that it starts inherit.
class Limit {
public:
    Limit(__rlimit_resource resource, rlim_t most) : resource_(resource) {
        EXPECT_EQ(::getrlimit(resource_, &before_), 0);
        const rlimit small{most, before_.rlim_max};
        EXPECT_EQ(::setrlimit(resource_, &small), 0);
    }
    ~Limit() { ::setrlimit(resource_, &before_); }
    Limit(const Limit&) = delete;
    Limit& operator=(const Limit&) = delete;

private:
    const __rlimit_resource resource_;
    rlimit before_{};
};

void startWith(Job& job, __rlimit_resource resource, rlim_t most) {
    const Limit limit(resource, most);
    job.start();
}

TEST(FileSizes, OfTwentyMegabytesSufficeForCallsOfFour) {
    Job job(3, {"big", "4"});
    startWith(job, RLIMIT_FSIZE, 20 << 20);
    for (int rank = 0; rank < 3; ++rank) {
        EXPECT_EQ(job.rank(rank).wait(milliseconds(10000)), 0) << job.rank(rank).output();
    }
}

TEST(FileSizes, BelowAMegabyteAreRefusedWithTheLimit) {
    Job job(1, {"once"});
    startWith(job, RLIMIT_FSIZE, 100 << 10);
    EXPECT_EQ(job.rank(0).wait(milliseconds(10000)), isthmusResource);
    EXPECT_THAT(lineOf(job.rank(0), "failed "),
                AllOf(HasSubstr("102400 bytes"), HasSubstr("ulimit -f")));
}

class Descriptors : public testing::TestWithParam<bool> {
protected:
    Variables variables() const {
        return {{"ISTHMUS_SHM", GetParam() ? "1" : "0"}, {"ISTHMUS_TIMEOUT", "2000"}};
    }
};

INSTANTIATE_TEST_SUITE_P(Ways, Descriptors, testing::Bool(),
                         [](const auto& test) { return test.param ? "Shared" : "Tcp"; });

TEST_P(Descriptors, SixtyFourAreEnoughForThreeRanks) {
    Job job(3, {"big", "4"}, variables());
    startWith(job, RLIMIT_NOFILE, 64);
    for (int rank = 0; rank < 3; ++rank) {
        EXPECT_EQ(job.rank(rank).wait(milliseconds(10000)), 0) << job.rank(rank).output();
    }
}

TEST_P(Descriptors, ThatRunOutEndEveryRankInTimeAndAreNamed) {
    for (const rlim_t most : {14, 20}) {
        Job job(3, {"big", "4"}, variables());
        startWith(job, RLIMIT_NOFILE, most);
        std::string all;
        int ended = 0;
        for (int rank = 0; rank < 3; ++rank) {
            const int code = job.rank(rank).wait(milliseconds(8000));
            EXPECT_GE(code, 0) << "rank " << rank << " with " << most << " hangs";
            EXPECT_LT(code, 128) << "rank " << rank << " with " << most << " was killed";
            ended += code == 0 ? 1 : 0;
            all += job.rank(rank).output() + job.rank(rank).error();
        }
        if (ended == 3) continue;
        EXPECT_THAT(all, HasSubstr("ulimit -n")) << most;
    }
}

}  // namespace
}  // namespace isthmus::test
