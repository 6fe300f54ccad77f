// Blocking calls that meet once, without an Execution: the same for peers as any other call.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/engine/engine_job.hpp"

namespace isthmus::test {
namespace {

using testing::HasSubstr;

constexpr QuickCall::Kind kSumOfTwo{Collective::kAllReduce, DataType::kFloat32, ReduceOp::kSum, 0,
                                    2};

QuickCall quickly(const QuickCall::Kind& kind, std::vector<float>& numbers) {
    auto* const bytes = reinterpret_cast<std::byte*>(numbers.data());
    return {kind, bytes, bytes};
}

void learn(EngineJob& job, Rank rank, QuickCall::Kind kind, const char* algorithm = "inline") {
    std::vector<float> numbers(kind.count);
    job.engine(rank).withToken([&] {
        CallRequest call = quickly(kind, numbers).request();
        call.prepared = job.prepare(rank, call, {algorithm});
        job.group(rank).learn(kind, std::move(call), true);
    });
}

Quick enter(EngineJob& job, Rank rank, const QuickCall& call) {
    Quick way = Quick::kNotNow;
    job.engine(rank).withToken([&] { way = job.group(rank).enterQuickly(call); });
    return way;
}

bool end(EngineJob& job, Rank rank) {
    bool isOver = false;
    job.engine(rank).withToken([&] { isOver = job.group(rank).endQuickly(); });
    return isOver;
}

std::shared_ptr<Work> adopt(EngineJob& job, Rank rank, const QuickCall& call) {
    auto request = std::make_unique<CallRequest>(call.request());
    request->limit = std::chrono::seconds(60);
    request->deadline = job.now() + request->limit;
    auto work = request->work = std::make_shared<Work>();
    job.engine(rank).withToken([&] { job.group(rank).adopt(std::move(request)); });
    return work;
}

TEST(QuickCalls, AreWorthLearningWhenAKindComesAgain) {
    EngineJob job({0, 0});
    std::vector<float> numbers = {1, 10};
    EXPECT_EQ(enter(job, 0, quickly(kSumOfTwo, numbers)), Quick::kNotNow);
    EXPECT_EQ(enter(job, 0, quickly(kSumOfTwo, numbers)), Quick::kLearn);
    learn(job, 0, kSumOfTwo, "direct");  // meets more than once
    EXPECT_EQ(enter(job, 0, quickly(kSumOfTwo, numbers)), Quick::kNotNow);
}

TEST(QuickCalls, EndWhenTheLastHasEntered) {
    EngineJob job({0, 0, 0});
    std::vector<std::vector<float>> numbers = {{1, 10}, {2, 20}, {4, 40}};
    for (const Rank rank : {0, 1, 2}) learn(job, rank, kSumOfTwo);
    for (const Rank rank : {0, 1, 2}) {
        EXPECT_FALSE(rank > 0 && end(job, 0));
        ASSERT_EQ(enter(job, rank, quickly(kSumOfTwo, numbers[rank])), Quick::kEntered);
    }
    for (const Rank rank : {0, 1, 2}) {
        EXPECT_TRUE(end(job, rank));
        EXPECT_EQ(numbers[rank], (std::vector<float>{7, 70}));
        EXPECT_EQ(job.group(rank).finished(), 1U);
    }
}

TEST(QuickCalls, MeetCallsThatWentTheOtherWay) {
    EngineJob job({0, 0});
    std::vector<float> mine = {1, 10};
    std::vector<float> theirs = {2, 20};
    learn(job, 0, kSumOfTwo);
    const auto work = job.start(1, sumOf(theirs), {"inline"});
    job.step(1);
    ASSERT_EQ(enter(job, 0, quickly(kSumOfTwo, mine)), Quick::kEntered);
    EXPECT_TRUE(end(job, 0));
    job.settle();
    ASSERT_TRUE(work->isDone());
    EXPECT_TRUE(work->status().ok());
    EXPECT_EQ(mine, (std::vector<float>{3, 30}));
    EXPECT_EQ(theirs, (std::vector<float>{3, 30}));
}

TEST(QuickCalls, GoOnAsOrdinaryOnesWhenAPeerIsLate) {
    EngineJob job({0, 0});
    std::vector<float> mine = {1, 10};
    std::vector<float> theirs = {2, 20};
    learn(job, 0, kSumOfTwo);
    const QuickCall call = quickly(kSumOfTwo, mine);
    ASSERT_EQ(enter(job, 0, call), Quick::kEntered);
    EXPECT_FALSE(end(job, 0));
    const auto work = adopt(job, 0, call);
    job.settle();
    EXPECT_FALSE(work->isDone());
    EXPECT_EQ(enter(job, 0, call), Quick::kNotNow);  // one at a time
    const auto late = job.start(1, sumOf(theirs), {"inline"});
    job.settle();
    ASSERT_TRUE(work->isDone() && late->isDone());
    EXPECT_TRUE(work->status().ok()) << work->status().what();
    EXPECT_EQ(mine, (std::vector<float>{3, 30}));
    EXPECT_EQ(theirs, (std::vector<float>{3, 30}));
}

TEST(QuickCalls, TimeOutLikeOrdinaryOnes) {
    EngineJob job({0, 0});
    std::vector<float> mine = {1, 10};
    learn(job, 0, kSumOfTwo);
    const QuickCall call = quickly(kSumOfTwo, mine);
    ASSERT_EQ(enter(job, 0, call), Quick::kEntered);
    const auto work = adopt(job, 0, call);
    ASSERT_TRUE(job.runFor([&] { return work->isDone(); }, std::chrono::seconds(70)));
    EXPECT_EQ(work->status().code(), Status::Code::kTimeout);
    EXPECT_THAT(work->status().what(), HasSubstr("all_reduce #0"));
    EXPECT_THAT(work->status().what(), HasSubstr("rank 1"));
}

TEST(QuickCalls, ThatDisagreeFailWithBothCalls) {
    EngineJob job({0, 0});
    constexpr QuickCall::Kind kMax{Collective::kAllReduce, DataType::kFloat32, ReduceOp::kMax, 0,
                                   2};
    std::vector<std::vector<float>> numbers = {{1, 10}, {2, 20}};
    learn(job, 0, kSumOfTwo);
    learn(job, 1, kMax);
    const QuickCall sum = quickly(kSumOfTwo, numbers[0]);
    const QuickCall most = quickly(kMax, numbers[1]);
    ASSERT_EQ(enter(job, 0, sum), Quick::kEntered);
    ASSERT_EQ(enter(job, 1, most), Quick::kEntered);
    EXPECT_FALSE(end(job, 0));
    EXPECT_FALSE(end(job, 1));
    const std::vector<std::shared_ptr<Work>> works = {adopt(job, 0, sum), adopt(job, 1, most)};
    ASSERT_TRUE(job.runFor([&] { return works[0]->isDone() && works[1]->isDone(); },
                           std::chrono::seconds(1)));
    for (const auto& work : works) {
        EXPECT_EQ(work->status().code(), Status::Code::kMismatch);
        EXPECT_THAT(work->status().what(), HasSubstr("all_reduce f32 x 2 sum"));
        EXPECT_THAT(work->status().what(), HasSubstr("all_reduce f32 x 2 max"));
    }
    EXPECT_EQ(enter(job, 0, sum), Quick::kNotNow);  // failed: call() says why
}

TEST(QuickCalls, OfMoreKindsThanAreKeptAreStillRight) {
    EngineJob job({0, 0});
    for (int round = 0; round < 3; ++round) {
        for (std::size_t count = 1; count <= 40; ++count) {
            QuickCall::Kind kind = kSumOfTwo;
            kind.count = count;
            std::vector<std::vector<float>> numbers(2, std::vector<float>(count, 1.5F));
            for (const Rank rank : {0, 1}) {
                learn(job, rank, kind);
                ASSERT_EQ(enter(job, rank, quickly(kind, numbers[rank])), Quick::kEntered);
            }
            for (const Rank rank : {0, 1}) {
                ASSERT_TRUE(end(job, rank));
                ASSERT_TRUE(isFilledWith(numbers[rank], 3.0F));
            }
        }
    }
}

TEST(QuickCalls, AreNotForSeveralNodes) {
    EngineJob job({0, 1});
    std::vector<float> numbers = {1, 10};
    for (int i = 0; i < 3; ++i)
        EXPECT_EQ(enter(job, 0, quickly(kSumOfTwo, numbers)), Quick::kNotNow);
}

}  // namespace
}  // namespace isthmus::test
