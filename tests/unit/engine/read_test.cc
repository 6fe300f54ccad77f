// Inputs that peers read through the system: when that is done, and what a failure says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "comm/engine/read_choice.hpp"
#include "tests/unit/engine/engine_job.hpp"

namespace isthmus::test {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

constexpr auto kGather = Collective::kAllGather;

constexpr int kTries = 9;  // of each way

TEST(ReadChoice, TriesOneWayAfterTheOtherAndKeepsTheQuicker) {
    ReadChoice choice(ReadChoice::Wish::kMeasure);
    for (int call = 0; call < 2 * kTries; ++call) {
        EXPECT_FALSE(choice.isSettled(kGather, 1 << 20));
        const bool isRead = choice.prefersReading(kGather, 1 << 20);
        EXPECT_EQ(isRead, call >= kTries);
        // The first of each way are slow and say nothing.
        const int first = call % kTries < 2 ? 90 : 0;
        choice.took(kGather, 1 << 20, isRead, microseconds((isRead ? 8 : 10) + first));
    }
    EXPECT_TRUE(choice.isSettled(kGather, 1 << 20));
    EXPECT_TRUE(choice.prefersReading(kGather, 1 << 20));
    EXPECT_FALSE(choice.isSettled(kGather, 1 << 10));  // another size
    EXPECT_FALSE(choice.isSettled(Collective::kBroadcast, 1 << 20));
}

TEST(ReadChoice, LooksAtTheMedian) {
    ReadChoice choice(ReadChoice::Wish::kMeasure);
    for (int call = 0; call < 2 * kTries; ++call) {
        const bool isRead = choice.prefersReading(kGather, 4096);
        const bool isLucky = !isRead && call % 3 == 2;  // 3 of the 7 that count
        choice.took(kGather, 4096, isRead, microseconds(isRead ? 9 : isLucky ? 5 : 10));
    }
    EXPECT_TRUE(choice.prefersReading(kGather, 4096));
}

// Calls that were begun before the first of them ended.
TEST(ReadChoice, HearsOfMoreCallsThanItTries) {
    ReadChoice choice(ReadChoice::Wish::kMeasure);
    for (int call = 0; call < 40; ++call) choice.took(kGather, 4096, false, microseconds(10));
    EXPECT_TRUE(choice.prefersReading(kGather, 4096));
    for (int call = 0; call < 40; ++call) choice.took(kGather, 4096, true, microseconds(20));
    EXPECT_FALSE(choice.prefersReading(kGather, 4096));
}

TEST(ReadChoice, IsOverWhereABufferCanNeverBeRead) {
    ReadChoice choice(ReadChoice::Wish::kMeasure);
    for (int call = 0; call < 2 * kTries; ++call) {
        if (choice.prefersReading(kGather, 4096)) choice.couldNotRead(kGather, 4096);
        choice.took(kGather, 4096, false, microseconds(10));
    }
    EXPECT_TRUE(choice.isSettled(kGather, 4096));
    EXPECT_FALSE(choice.prefersReading(kGather, 4096));
}

TEST(ReadChoice, TriesAnewAfterManyCalls) {
    ReadChoice choice(ReadChoice::Wish::kMeasure);
    const auto run = [&](int calls, microseconds staged, microseconds read) {
        bool isRead = false;
        for (int call = 0; call < calls; ++call) {
            isRead = choice.prefersReading(kGather, 4096);
            choice.took(kGather, 4096, isRead, isRead ? read : staged);
        }
        return isRead;
    };
    EXPECT_FALSE(run(100, microseconds(5), microseconds(9)));
    EXPECT_TRUE(run(5000, microseconds(9), microseconds(5)));  // the machine has changed
}

TEST(ReadChoice, ReadsAlwaysWhenToldTo) {
    ReadChoice choice(ReadChoice::Wish::kAlways);
    choice.took(kGather, 4096, true, seconds(1));
    EXPECT_TRUE(choice.prefersReading(kGather, 4096));
    EXPECT_TRUE(choice.isSettled(kGather, 4096));
}

class Reading : public testing::Test {
protected:
    static constexpr std::size_t kElements = 5000;

    static CallRequest request(Collective collective, const std::vector<float>& input,
                               std::vector<float>& output) {
        CallRequest call;
        call.collective = collective;
        call.type = DataType::kFloat32;
        call.input = reinterpret_cast<const std::byte*>(input.data());
        call.output = reinterpret_cast<std::byte*>(output.data());
        call.counts.uniform = kElements;
        return call;
    }

    /// Everybody gives its number from 1, kElements of them.
    std::vector<std::shared_ptr<Work>> gather(EngineJob& job, int segments = 1) {
        std::vector<std::shared_ptr<Work>> works;
        for (Rank rank = 0; rank < job.ranks(); ++rank) {
            inputs_.emplace_back(kElements, static_cast<float>(rank + 1));
            outputs_.emplace_back(kElements * static_cast<std::size_t>(job.ranks()), 0.0F);
            works.push_back(
                job.start(rank, request(Collective::kAllGather, inputs_.back(), outputs_.back()),
                          {"direct", segments, segments}));
        }
        EXPECT_TRUE(job.runFor(
            [&] {
                return std::all_of(works.begin(), works.end(),
                                   [](const auto& work) { return work->isDone(); });
            },
            seconds(5)));
        return works;
    }
    bool isGathered() const {
        for (const auto& output : outputs_) {
            for (std::size_t i = 0; i < output.size(); ++i) {
                const std::size_t rank = i / kElements;
                if (output[i] != static_cast<float>(rank + 1)) return false;
            }
        }
        return !outputs_.empty();
    }

    std::deque<std::vector<float>> inputs_;
    std::deque<std::vector<float>> outputs_;
};

TEST_F(Reading, GivesWhatStagingGives) {
    for (const int segments : {1, 3}) {
        EngineJob job({0, 0, 0}, EngineJob::Reads{::getpid()});
        for (const auto& work : gather(job, segments))
            EXPECT_TRUE(work->status().ok()) << work->status().what();
        EXPECT_TRUE(isGathered());
    }
}

TEST_F(Reading, NamesTheRankWhoseMemoryIsNotThere) {
    EngineJob job({0, 0}, EngineJob::Reads{0x3fffff});  // no process has that number (proc(5))
    for (const auto& work : gather(job)) {
        EXPECT_EQ(work->status().code(), Status::Code::kPeerLost);
        EXPECT_THAT(work->status().what(), testing::HasSubstr("the input of rank "));
        EXPECT_THAT(work->status().what(), testing::HasSubstr("cannot be read"));
    }
}

TEST_F(Reading, IsLeftWhereOneRankCannotBeRead) {
    // An all-to-all in place is written before it is read: staged, so nobody misses the process.
    EngineJob job({0, 0}, EngineJob::Reads{0x3fffff});
    std::vector<std::shared_ptr<Work>> works;
    for (Rank rank = 0; rank < 2; ++rank) {
        inputs_.emplace_back(2 * kElements, static_cast<float>(rank + 1));
        works.push_back(job.start(
            rank, request(Collective::kAllToAll, inputs_.back(), inputs_.back()), {"direct"}));
    }
    EXPECT_TRUE(job.runFor([&] { return works[0]->isDone() && works[1]->isDone(); }, seconds(5)));
    for (const auto& work : works) EXPECT_TRUE(work->status().ok()) << work->status().what();
    for (const auto& buffer : inputs_) {
        EXPECT_EQ(buffer.front(), 1.0F);
        EXPECT_EQ(buffer.back(), 2.0F);
    }
}

}  // namespace
}  // namespace isthmus::test
