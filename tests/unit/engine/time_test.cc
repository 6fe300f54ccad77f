// Deadlines, aborts and losses under a virtual clock.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/unit/engine/engine_job.hpp"

namespace isthmus::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Deadlines are looked at this often while other things happen (membership.hpp, kCheckEvery).
constexpr Time kLook = milliseconds(2);

class Deadline : public testing::TestWithParam<std::vector<int>> {
protected:
    std::string algorithm() const { return GetParam().back() == 0 ? "direct" : "ring"; }
};

INSTANTIATE_TEST_SUITE_P(Layouts, Deadline,
                         testing::Values(std::vector<int>{0, 0, 0}, std::vector<int>{0, 1, 2}),
                         [](const auto& test) {
                             return test.param.back() == 0 ? "Inproc" : "Sim";
                         });

TEST_P(Deadline, FailsACallAtItsMomentAndNamesWhoNeverCame) {
    // A process of another node counts as silent after 100 ms and some more (kAnswerPatience).
    for (const bool isAlive : {true, false}) {
        for (const int limit : {150, 250, 1001}) {
            EngineJob job(GetParam());
            std::vector<float> first(100, 1);
            std::vector<float> second(100, 1);
            if (!isAlive) job.stop(2);
            const Time begin = job.now();
            const auto work = job.start(0, sumOf(first), {algorithm()}, milliseconds(limit));
            const auto other = job.start(1, sumOf(second), {algorithm()}, milliseconds(limit));
            EXPECT_FALSE(job.runFor([&] { return !job.group(0).failure().ok(); },
                                    milliseconds(limit) - nanoseconds(1)));
            EXPECT_TRUE(job.group(1).failure().ok());
            ASSERT_TRUE(job.runFor([&] { return !job.group(0).failure().ok(); }, seconds(10)));
            EXPECT_LE(job.now() - begin, milliseconds(limit) + kLook);
            const Status why = job.group(0).failure();
            EXPECT_EQ(why.code(), Status::Code::kTimeout);
            EXPECT_THAT(
                why.what(),
                AllOf(HasSubstr("all_reduce #0 on \"dp\""), HasSubstr("rank 2 (place 2)"),
                      HasSubstr(std::to_string(limit) + " ms"), Not(HasSubstr("gave up on rank 0")),
                      Not(HasSubstr("gave up on rank 1"))));
            // The memory of a rank that stands still may be in use for half a second more.
            ASSERT_TRUE(job.runFor([&] { return work->isDone() && other->isDone(); }, seconds(1)));
            EXPECT_EQ(work->status().what(), why.what());
            EXPECT_EQ(other->status().code(), Status::Code::kTimeout);
            EXPECT_THAT(other->status().what(), HasSubstr("rank 2 (place 2)"));
        }
    }
}

TEST_P(Deadline, IsExactWhenNothingElseHappens) {
    EngineJob job(GetParam());
    std::vector<float> buffer(100, 1);
    const Time begin = job.now();
    job.start(0, sumOf(buffer), {algorithm()}, milliseconds(400));
    ASSERT_TRUE(job.runFor([&] { return !job.group(0).failure().ok(); }, seconds(10)));
    EXPECT_EQ(job.now() - begin, milliseconds(400));
}

TEST(Blame, IsNotForARankThatWaitsInAnEarlierCall) {
    EngineJob job({0, 1, 2});
    job.stop(2);
    // Down the chain 0 -> 1 -> 2: 0 is done when 1 has it, 1 cannot pass it on.
    constexpr std::size_t kElements = 1 << 16;
    std::vector<std::vector<float>> buffers(2, std::vector<float>(kElements, 1));
    std::vector<std::shared_ptr<Work>> works;
    for (Rank rank = 0; rank < 2; ++rank) {
        CallRequest call = sumOf(buffers[rank]);
        call.collective = Collective::kBroadcast;
        works.push_back(job.start(rank, std::move(call), {"chain"}));
    }
    ASSERT_TRUE(job.runFor([&] { return works[0]->isDone(); }, seconds(5)));
    ASSERT_FALSE(works[1]->isDone());
    std::vector<float> next(100, 1);
    works.push_back(job.start(0, sumOf(next), {"exchange"}, seconds(1)));
    ASSERT_TRUE(job.runFor([&] { return works[2]->isDone(); }, seconds(5)));
    EXPECT_THAT(works[2]->status().what(),
                AllOf(HasSubstr("gave up on rank 2 (place 2) which does not answer"),
                      Not(HasSubstr("rank 1 (place 1) which"))));
}

TEST_P(Deadline, OfACallThatCouldNotBeginCountsToo) {
    EngineJob job(GetParam());
    std::vector<std::vector<float>> buffers(5, std::vector<float>(100, 1));
    for (int call = 0; call < 4; ++call) {
        job.start(0, sumOf(buffers[call]), {algorithm()}, milliseconds(5000));
    }
    const Time begin = job.now();
    const auto work = job.start(0, sumOf(buffers[4]), {algorithm()}, milliseconds(100));
    ASSERT_TRUE(job.runFor([&] { return !job.group(0).failure().ok(); }, seconds(10)));
    EXPECT_GE(job.now() - begin, milliseconds(100));
    EXPECT_LE(job.now() - begin, milliseconds(100) + kLook);
    EXPECT_THAT(job.group(0).failure().what(),
                AllOf(HasSubstr("not begun after 100 ms"), HasSubstr("#4")));
    ASSERT_TRUE(job.runFor([&] { return work->isDone(); }, seconds(1)));
    EXPECT_EQ(work->status().code(), Status::Code::kTimeout);
}

TEST_P(Deadline, ThatIsNotReachedDoesNoHarm) {
    EngineJob job(GetParam());
    std::vector<std::vector<float>> buffers(3, std::vector<float>(100, 1));
    std::vector<std::shared_ptr<Work>> works;
    for (Rank rank = 0; rank < 2; ++rank) {
        works.push_back(job.start(rank, sumOf(buffers[rank]), {algorithm()}, milliseconds(400)));
    }
    EXPECT_FALSE(job.runFor([&] { return works[0]->isDone(); }, milliseconds(399)));
    works.push_back(job.start(2, sumOf(buffers[2]), {algorithm()}, milliseconds(400)));
    ASSERT_TRUE(
        job.runFor([&] { return works[0]->isDone() && works[1]->isDone() && works[2]->isDone(); },
                   milliseconds(1)));
    for (Rank rank = 0; rank < 3; ++rank) {
        EXPECT_TRUE(works[rank]->status().ok()) << works[rank]->status().what();
        EXPECT_TRUE(isFilledWith(buffers[rank], 3));
    }
}

// A stopped process sees its own deadline late, and knows least of all why it was missed.
TEST_P(Deadline, OfAProcessThatWasStoppedLetsTheOthersSpeakFirst) {
    for (const int after : {0, 100, -1}) {  // ms until it hears them; never
        EngineJob job(GetParam());
        std::vector<std::vector<float>> buffers(2, std::vector<float>(100, 1));
        job.start(0, sumOf(buffers[0]), {algorithm()}, seconds(20));
        job.start(2, sumOf(buffers[1]), {algorithm()}, seconds(1));
        job.settle();
        job.stop(2);
        const auto never = [] { return false; };
        job.runFor(never, seconds(3));
        job.letGo(2);
        const Time begin = job.now();
        ASSERT_GT(begin, seconds(2));
        const auto tell = [&] { job.group(2).told(0, Status::timeout("gave up on rank 2"), 1); };
        if (after > 0) job.runFor(never, milliseconds(after));
        if (after >= 0) job.engine(2).withToken(tell);
        ASSERT_TRUE(job.runFor([&] { return !job.group(2).failure().ok(); }, seconds(1)));
        if (after >= 0) {
            EXPECT_EQ(job.group(2).failure().what(), "gave up on rank 2");
        } else {
            EXPECT_LE(job.now() - begin, milliseconds(300) + kLook);
            EXPECT_THAT(job.group(2).failure().what(), HasSubstr("of 1000 ms"));
        }
    }
}

TEST(Blame, IsNotForACallWhoseOnlyFaultIsToWaitBehindAnother) {
    EngineJob job({0, 1, 2});
    // Down the chain 2 -> 0 -> 1: rank 1 waits for one that waits itself.
    std::vector<std::vector<float>> buffers(10, std::vector<float>(100, 1));
    for (int number = 0; number < 10; ++number) {
        CallRequest call = sumOf(buffers[number]);
        call.collective = Collective::kBroadcast;
        call.root = 2;
        const Rank rank = number % 2;
        job.start(rank, std::move(call), {"chain"}, rank == 0 ? seconds(60) : milliseconds(400));
    }
    ASSERT_TRUE(job.runFor([&] { return !job.group(1).failure().ok(); }, seconds(10)));
    EXPECT_THAT(job.group(1).failure().what(),
                AllOf(HasSubstr("broadcast #0"), HasSubstr("gave up on rank 0 (place 0) after")));
}

// HANG-03, https://github.com/xorbitsai/xoscar/pull/200: what the kernel of a stopped process
// answers proves nothing, so its engine must.
class Unresponsive : public Deadline {
protected:
    static std::string logOf(const std::function<void()>& act) {
        testing::internal::CaptureStderr();
        act();
        return testing::internal::GetCapturedStderr();
    }
};

INSTANTIATE_TEST_SUITE_P(Layouts, Unresponsive,
                         testing::Values(std::vector<int>{0, 0, 0}, std::vector<int>{0, 1, 2}),
                         [](const auto& test) {
                             return test.param.back() == 0 ? "Inproc" : "Sim";
                         });

TEST_P(Unresponsive, RankIsNamedOnceWithinTwoSecondsAndWhenItAnswersAgain) {
    EngineJob job(GetParam());
    std::vector<std::vector<float>> buffers(3, std::vector<float>(100, 1));
    std::vector<std::shared_ptr<Work>> works;
    job.stop(2);
    for (Rank rank = 0; rank < 3; ++rank) {
        works.push_back(job.start(rank, sumOf(buffers[rank]), {algorithm()}, seconds(20)));
    }
    const auto never = [] { return false; };
    EXPECT_EQ(logOf([&] { job.runFor(never, milliseconds(990)); }), "");
    const std::string soon = logOf([&] { job.runFor(never, milliseconds(1010)); });
    EXPECT_THAT(soon, AllOf(HasSubstr("WARNING"), HasSubstr("rank 2 (place 2) is unresponsive"),
                            HasSubstr("all_reduce #0 on \"dp\""), Not(HasSubstr("rank 0 (")),
                            Not(HasSubstr("rank 1 ("))));
    EXPECT_EQ(logOf([&] { job.runFor(never, seconds(5)); }), "");
    job.letGo(2);
    const auto areDone = [&] { return works[0]->isDone() && works[1]->isDone(); };
    EXPECT_THAT(logOf([&] { EXPECT_TRUE(job.runFor(areDone, seconds(1))); }),
                HasSubstr("rank 2 (place 2) answers again, after "));
    for (Rank rank = 0; rank < 3; ++rank) EXPECT_TRUE(isFilledWith(buffers[rank], 3)) << rank;
    for (Rank rank = 0; rank < 3; ++rank) EXPECT_TRUE(job.group(rank).failure().ok());
}

TEST(UnresponsiveRanks, AreNamedTogetherAndCountedWhenTheyAreMany) {
    EngineJob job(std::vector<int>{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
    std::vector<std::vector<float>> buffers(12, std::vector<float>(100, 1));
    for (Rank rank = 0; rank < 12; ++rank) {
        job.start(rank, sumOf(buffers[rank]), {"direct"}, seconds(20));
        if (rank > 0) job.stop(rank);
    }
    const auto linesOf = [](const std::string& text) {
        return std::count(text.begin(), text.end(), '\n');
    };
    testing::internal::CaptureStderr();
    job.runFor([] { return false; }, seconds(2));
    const std::string silent = testing::internal::GetCapturedStderr();
    EXPECT_EQ(linesOf(silent), 1) << silent;
    EXPECT_THAT(silent, HasSubstr("rank 8 (place 8) and 3 more ranks are unresponsive"));
    for (Rank rank = 1; rank < 12; ++rank) job.letGo(rank);
    testing::internal::CaptureStderr();
    ASSERT_TRUE(job.runFor([&] { return isFilledWith(buffers[0], 12); }, seconds(1)));
    const std::string back = testing::internal::GetCapturedStderr();
    EXPECT_LE(linesOf(back), 11) << back;
    EXPECT_THAT(back, HasSubstr(" again, after "));
}

TEST_P(Unresponsive, IsNoRankThatIsOnlyLate) {
    EngineJob job(GetParam());
    std::vector<float> buffer(100, 1);
    job.start(0, sumOf(buffer), {algorithm()}, seconds(20));
    EXPECT_EQ(logOf([&] { job.runFor([] { return false; }, seconds(10)); }), "");
}

TEST_P(Unresponsive, SourceOfAReceiveIsNamedToo) {
    EngineJob job(GetParam());
    std::vector<float> buffer(100, 1);
    job.stop(2);
    auto request = std::make_unique<PointToPointRequest>();
    request->peer = 2;
    request->buffer = reinterpret_cast<std::byte*>(buffer.data());
    request->bytes = buffer.size() * sizeof(float);
    request->limit = seconds(3);
    request->deadline = job.now() + seconds(3);
    request->work = std::make_shared<Work>();
    const auto work = request->work;
    job.engine(0).withToken([&] { job.group(0).pointToPoint().submit(std::move(request)); });
    EXPECT_THAT(logOf([&] { job.runFor([] { return false; }, milliseconds(2000)); }),
                HasSubstr("rank 2 (place 2) is unresponsive"));
    ASSERT_TRUE(job.runFor([&] { return work->isDone(); }, milliseconds(1010)));
    EXPECT_THAT(work->status().what(),
                HasSubstr("gave up on rank 2 (place 2) which does not answer after 3000 ms"));
}

class Abort : public Deadline {};

INSTANTIATE_TEST_SUITE_P(Layouts, Abort,
                         testing::Values(std::vector<int>{0, 0, 0}, std::vector<int>{0, 1, 2}),
                         [](const auto& test) {
                             return test.param.back() == 0 ? "Inproc" : "Sim";
                         });

// https://github.com/pytorch/pytorch/pull/141510
TEST_P(Abort, IsHeardByAllAndEndsEveryCallInTheOrderOfIssue) {
    EngineJob job(GetParam());
    constexpr int kCalls = 7;
    std::vector<std::vector<float>> buffers(3 * kCalls, std::vector<float>(100, 1));
    std::vector<std::vector<int>> order(3);
    for (Rank rank = 0; rank < 2; ++rank) {  // rank 2 never calls
        for (int call = 0; call < kCalls; ++call) {
            const auto work = job.start(rank, sumOf(buffers[rank * kCalls + call]), {algorithm()});
            work->onComplete([&order, rank, call](const Status& status) {
                EXPECT_EQ(status.code(), Status::Code::kAborted);
                EXPECT_EQ(status.what(), "given up by hand");
                order[rank].push_back(call);
            });
        }
    }
    job.settle();
    const Time begin = job.now();
    job.engine(0).withToken([&] { job.group(0).fail(Status::aborted("given up by hand")); });
    const auto areOver = [&] { return order[0].size() + order[1].size() == 2 * kCalls; };
    ASSERT_TRUE(job.runFor(areOver, seconds(1)));
    EXPECT_LE(job.now() - begin, milliseconds(1));
    for (Rank rank = 0; rank < 2; ++rank) {
        EXPECT_EQ(order[rank], (std::vector<int>{0, 1, 2, 3, 4, 5, 6})) << "rank " << rank;
    }
    EXPECT_EQ(job.group(2).failure().what(), "given up by hand");
    // What comes later fails at once.
    const auto later = job.start(2, sumOf(buffers[2 * kCalls]), {algorithm()});
    EXPECT_TRUE(later->isDone());
    EXPECT_EQ(later->status().what(), "given up by hand");
}

TEST_P(Abort, WaitsForNobodyOnOtherNodesAndHalfASecondForAStoppedRankOfThisOne) {
    EngineJob job(GetParam());
    std::vector<float> first(100, 1);
    std::vector<float> second(100, 1);
    const auto work = job.start(0, sumOf(first), {algorithm()});
    job.start(1, sumOf(second), {algorithm()});
    job.settle();
    job.stop(1);
    job.stop(2);
    const Time begin = job.now();
    job.engine(0).withToken([&] { job.group(0).fail(Status::aborted("given up by hand")); });
    ASSERT_TRUE(job.runFor([&] { return work->isDone(); }, seconds(1)));
    // A stopped rank of this node may still read the call's buffers (kStopPatience).
    const bool isOneNode = GetParam().back() == 0;
    EXPECT_EQ(job.now() - begin, isOneNode ? milliseconds(500) : milliseconds(0));
}

// What its teller has done its part in ends well; what it has not, does not.
TEST_P(Abort, OfAnotherRankLeavesCallsAloneThatItHasDone) {
    for (const std::uint64_t finished : {0, 1}) {
        EngineJob job(GetParam());
        std::vector<std::vector<float>> buffers(3, std::vector<float>(100, 1));
        std::vector<std::shared_ptr<Work>> works;
        for (Rank rank = 0; rank < 3; ++rank)
            works.push_back(job.start(rank, sumOf(buffers[rank]), {algorithm()}));
        job.engine(2).withToken(
            [&] { job.group(2).told(0, Status::mismatch("of call 1"), finished); });
        ASSERT_TRUE(job.runFor([&] { return works[2]->isDone(); }, seconds(1)));
        EXPECT_EQ(works[2]->status().ok(), finished == 1);
        EXPECT_EQ(isFilledWith(buffers[2], 3), finished == 1);
        EXPECT_EQ(job.group(2).failure().what(), "of call 1");
    }
}

TEST_P(Abort, OfAnotherRankIsNotHeldForLong) {
    EngineJob job(GetParam());
    std::vector<float> buffer(100, 1);
    const auto work = job.start(2, sumOf(buffer), {algorithm()});
    job.settle();
    const Time begin = job.now();
    job.engine(2).withToken([&] { job.group(2).told(0, Status::peerLost("gone"), 1); });
    ASSERT_TRUE(job.runFor([&] { return !job.group(2).failure().ok(); }, seconds(1)));
    EXPECT_LE(job.now() - begin, milliseconds(20) + kLook);
    EXPECT_GE(job.now() - begin, milliseconds(20));
}

TEST(Abort, TheFirstCauseWins) {
    EngineJob job({0, 1});
    job.engine(0).withToken([&] { job.group(0).fail(Status::aborted("first")); });
    job.engine(0).withToken([&] { job.group(0).fail(Status::aborted("second")); });
    job.engine(1).withToken([&] { job.group(1).fail(Status::aborted("other")); });
    job.runFor([] { return false; }, seconds(1));
    EXPECT_EQ(job.group(0).failure().what(), "first");
    EXPECT_EQ(job.group(1).failure().what(), "other");
}

}  // namespace
}  // namespace isthmus::test
