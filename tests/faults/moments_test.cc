// Ranks that die or stop at a moment of chance, amid calls whose results are checked: who is named,
// how soon, and that nothing hangs or is wrong. All repetitions: TESTS_WHOLE=1 in the environment.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include <isthmus/isthmus.h>

#include "tests/faults/layouts.hpp"

namespace isthmus::test {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const Layout kLayouts[] = {
    {"Shared4", "", 4, true},    {"Tcp4", "", 4, false},         {"Shared8", "", 8, true},
    {"Two2x2", "2x2", 4, true},  {"Three321", "3+2+1", 6, true}, {"Three3x2", "3x2", 6, true},
    {"TwoTcp", "2x3", 6, false},
};

class Moments : public testing::TestWithParam<Layout> {
protected:
    // One layout after another: what one needs goes before the next is made.
    static void TearDownTestSuite() { place_.reset(); }
    void SetUp() override {
        if (place_ == nullptr || place_->layout().name != GetParam().name) {
            place_.reset();
            place_ = std::make_unique<Place>(GetParam());
        }
        if (!place_->missing().empty()) GTEST_SKIP() << place_->missing();
    }

    static int ranks() { return place_->layout().ranks; }
    int pick(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }

    /// Drawn anew in every run; the trace of a failure has it.
    std::mt19937 random_{std::random_device{}()};
    static std::unique_ptr<Place> place_;
};

std::unique_ptr<Place> Moments::place_;

INSTANTIATE_TEST_SUITE_P(Layouts, Moments, testing::ValuesIn(kLayouts),
                         [](const auto& test) { return std::string(test.param.name); });

/// Every run of these takes seconds.
class Stops : public Moments {};

INSTANTIATE_TEST_SUITE_P(Layouts, Stops, testing::Values(kLayouts[1], kLayouts[4]),
                         [](const auto& test) { return std::string(test.param.name); });

microseconds momentOf(const PlacedJob& job, int rank, const std::string& beginning) {
    return microseconds(std::stoll("0" + job.said(rank, beginning)));
}

std::vector<int> othersThan(int rank, int ranks) {
    std::vector<int> others;
    for (int other = 0; other < ranks; ++other) {
        if (other != rank) others.push_back(other);
    }
    return others;
}

bool allSay(const PlacedJob& job, const std::vector<int>& ranks, const std::string& beginning,
            milliseconds limit) {
    return becomes(
        [&] {
            return std::all_of(ranks.begin(), ranks.end(),
                               [&](int rank) { return !job.said(rank, beginning).empty(); });
        },
        limit);
}

void printMedian(const Layout& layout, std::vector<double>& delays) {
    std::sort(delays.begin(), delays.end());
    std::printf("%s: heard after %.1f ms (median of %zu), %.1f at most\n", layout.name,
                delays[delays.size() / 2], delays.size(), delays.back());
}

// https://github.com/ml-explore/mlx/pull/4060, https://github.com/NVIDIA/nccl/issues/585
TEST_P(Moments, OfDeathIsHeardByAllSurvivorsWhoNameTheRightRank) {  // HANG-01
    std::vector<double> delays;
    for (int run = 0; run < countOf(2, 15); ++run) {
        const int victim = pick(ranks());
        const std::string words = "dies " + std::to_string(victim) + " " +
                                  std::to_string(pick(300)) + " " + std::to_string(pick(1000));
        SCOPED_TRACE(words);
        const PlacedJob job(*place_, words);
        const auto others = othersThan(victim, ranks());
        ASSERT_TRUE(allSay(job, {victim}, "dies ", milliseconds(20000))) << job.everything();
        ASSERT_TRUE(allSay(job, others, "heard ", milliseconds(5000))) << job.everything();
        const microseconds died = momentOf(job, victim, "dies ");
        for (const int rank : others) {
            const std::string text = job.said(rank, "failed ");
            EXPECT_THAT(text, StartsWith(std::to_string(isthmusPeerLost) + " ")) << rank;
            EXPECT_THAT(text, HasSubstr("rank " + std::to_string(victim) + " (")) << rank;
            const microseconds delay = momentOf(job, rank, "heard ") - died;
            EXPECT_LT(delay, milliseconds(1000)) << "rank " << rank;
            delays.push_back(static_cast<double>(delay.count()) / 1e3);
        }
        EXPECT_THAT(job.everything(), Not(HasSubstr("wrong")));
    }
    printMedian(GetParam(), delays);
    // Of a machine with other work the second alone is asked.
    EXPECT_LT(delays[delays.size() / 2], countOf(1000, 100));
}

// https://github.com/jax-ml/jax/issues/38503, https://github.com/xorbitsai/xoscar/pull/200
TEST_P(Stops, AreWarnedOfAndEndAtTheLimit) {  // HANG-03
    constexpr milliseconds kLimit(2200);
    for (int run = 0; run < countOf(1, 13); ++run) {
        const int victim = pick(ranks());
        const std::string words = "stops " + std::to_string(victim) + " " +
                                  std::to_string(pick(300)) + " 4000 " +
                                  std::to_string(pick(1000)) + " 60000";
        SCOPED_TRACE(words);
        const PlacedJob job(*place_, words, {{"ISTHMUS_TIMEOUT", std::to_string(kLimit.count())}});
        const std::string name = "rank " + std::to_string(victim) + " (";
        ASSERT_TRUE(allSay(job, {victim}, "stops ", milliseconds(20000))) << job.everything();
        const microseconds stopped = momentOf(job, victim, "stops ");
        const auto isWarned = [&] {
            for (const std::string& line : linesOf(job.errors())) {
                const auto at = line.find(name);
                if (at != line.npos && line.find("is unresponsive", at) != line.npos) return true;
            }
            return false;
        };
        EXPECT_TRUE(becomes(isWarned, milliseconds(2000))) << job.everything();
        EXPECT_LT(steady_clock::now().time_since_epoch() - stopped, milliseconds(2000));
        const auto others = othersThan(victim, ranks());
        ASSERT_TRUE(allSay(job, others, "heard ", milliseconds(5000))) << job.everything();
        for (const int rank : others) {
            const std::string text = job.said(rank, "failed ");
            EXPECT_THAT(text, StartsWith(std::to_string(isthmusTimeout) + " ")) << rank;
            EXPECT_THAT(text, HasSubstr("gave up on " + name)) << rank;
            const microseconds after = momentOf(job, rank, "heard ") - stopped;
            EXPECT_GT(after, kLimit - milliseconds(500)) << rank;
            EXPECT_LT(after, kLimit + milliseconds(1000)) << rank;
        }
        ASSERT_TRUE(allSay(job, {victim}, "heard ", milliseconds(8000))) << job.everything();
        EXPECT_THAT(job.said(victim, "failed "), HasSubstr("gave up on " + name));
    }
}

TEST_P(Stops, ForLessThanTheLimitDoNoHarm) {  // HANG-03
    for (int run = 0; run < countOf(1, 12); ++run) {
        const int victim = pick(ranks());
        const std::string words =
            "stops " + std::to_string(victim) + " " + std::to_string(pick(300)) + " " +
            std::to_string(200 + pick(1500)) + " " + std::to_string(pick(1000)) + " 1500";
        SCOPED_TRACE(words);
        const PlacedJob job(*place_, words, {{"ISTHMUS_TIMEOUT", "20000"}});
        std::vector<int> all = othersThan(-1, ranks());
        EXPECT_TRUE(allSay(job, all, "done", milliseconds(25000))) << job.everything();
        EXPECT_THAT(job.everything(), Not(HasSubstr("failed")));
        EXPECT_THAT(job.everything(), Not(HasSubstr("wrong")));
    }
}

}  // namespace
}  // namespace isthmus::test
