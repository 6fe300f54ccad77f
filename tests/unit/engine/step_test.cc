// Calls, moved step by step over inproc and over sim.
#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/engine/engine_job.hpp"

namespace isthmus::test {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

struct Setting {
    std::string name;
    std::vector<int> nodeOfRank;
    std::string algorithm;
    bool isMapped = false;  ///< buffers in the arena
};

class Stepping : public testing::TestWithParam<Setting> {
protected:
    /// What everybody must end with when rank r begins with r + 1.
    static float sum(const EngineJob& job) {
        return static_cast<float>(job.ranks() * (job.ranks() + 1)) / 2;
    }
    std::vector<std::span<float>> buffersOf(EngineJob& job, std::size_t elements) {
        std::vector<std::span<float>> buffers;
        for (Rank rank = 0; rank < job.ranks(); ++rank) {
            const auto value = static_cast<float>(rank + 1);
            if (GetParam().isMapped) {
                buffers.push_back(job.mapped(rank, elements, value));
            } else {
                ordinary_.emplace_back(elements, value);
                buffers.emplace_back(ordinary_.back());
            }
        }
        return buffers;
    }
    Way way(int segments = 1, int window = 1) const {
        return {GetParam().algorithm, segments, window};
    }

private:
    std::deque<std::vector<float>> ordinary_;
};

INSTANTIATE_TEST_SUITE_P(
    Layouts, Stepping,
    testing::Values(Setting{"InprocStaged", {0, 0, 0}, "direct", false},
                    Setting{"InprocDirect", {0, 0, 0}, "direct", true},
                    Setting{"InprocMessages", {0, 0, 0}, "ring", false},
                    Setting{"SimMessages", {0, 1, 2}, "ring", false},
                    Setting{"TwoLevels", {0, 0, 1, 1}, "two_level_ring", false},
                    Setting{"TwoLevelsDirect", {0, 0, 1}, "two_level_ring", true},
                    Setting{"Leaders", {0, 0, 0, 1, 1}, "two_level_leaders", false},
                    Setting{"LeadersMapped", {0, 0, 1, 1}, "two_level_leaders", true}),
    [](const auto& test) { return test.param.name; });

TEST_P(Stepping, EndsACallWhenAllHaveEnteredItAndNotBefore) {
    EngineJob job(GetParam().nodeOfRank);
    const auto buffers = buffersOf(job, 1000);
    std::vector<std::shared_ptr<Work>> works;
    const Rank last = job.ranks() - 1;
    for (Rank rank = 0; rank < last; ++rank) {
        works.push_back(job.start(rank, sumOf(buffers[rank]), way()));
    }
    EXPECT_FALSE(job.runFor([] { return false; }, seconds(1)));
    for (const auto& work : works) EXPECT_FALSE(work->isDone());

    works.push_back(job.start(last, sumOf(buffers[last]), way()));
    // One rank alone never ends it, however often it is moved.
    for (int i = 0; i < 1000; ++i) job.step(last);
    EXPECT_FALSE(works[last]->isDone());
    EXPECT_TRUE(
        job.runFor([&] { return job.group(0).isIdle() && job.group(last).isIdle(); }, seconds(1)));
    job.settle();
    for (Rank rank = 0; rank < job.ranks(); ++rank) {
        ASSERT_TRUE(works[rank]->isDone()) << "rank " << rank;
        EXPECT_TRUE(works[rank]->status().ok()) << works[rank]->status().what();
        EXPECT_TRUE(isFilledWith(buffers[rank], sum(job))) << "rank " << rank;
    }
}

TEST_P(Stepping, RunsAnyNumberOfSegmentsInAnyWindowWithOddTails) {
    EngineJob job(GetParam().nodeOfRank);
    for (const std::size_t elements :
         {std::size_t{0}, std::size_t{1}, std::size_t{5}, std::size_t{1000}, std::size_t{65537}}) {
        for (const int segments : {1, 2, 7}) {
            for (const int window : {1, 2, 3, 4}) {
                SCOPED_TRACE(std::to_string(elements) + " elements in " + std::to_string(segments) +
                             " segments, window " + std::to_string(window));
                const auto buffers = buffersOf(job, elements);
                std::vector<std::shared_ptr<Work>> works;
                for (Rank rank = 0; rank < job.ranks(); ++rank) {
                    works.push_back(job.start(rank, sumOf(buffers[rank]), way(segments, window)));
                }
                const auto areDone = [&] {
                    return std::all_of(works.begin(), works.end(),
                                       [](const auto& work) { return work->isDone(); });
                };
                ASSERT_TRUE(job.runFor(areDone, seconds(5)));
                for (Rank rank = 0; rank < job.ranks(); ++rank) {
                    ASSERT_TRUE(works[rank]->status().ok()) << works[rank]->status().what();
                    ASSERT_TRUE(isFilledWith(buffers[rank], sum(job))) << "rank " << rank;
                }
            }
        }
    }
}

TEST_P(Stepping, KeepsManyCallsApartWhoseSizesDiffer) {
    EngineJob job(GetParam().nodeOfRank);
    constexpr int kCalls = 20;  // more than run at once, and more than there are lanes
    std::vector<std::vector<std::span<float>>> buffers;
    std::vector<std::shared_ptr<Work>> works;
    for (int call = 0; call < kCalls; ++call) {
        buffers.push_back(buffersOf(job, static_cast<std::size_t>(1 + call * call * 97 % 5000)));
    }
    // Ranks come one after another, each with all that it has.
    for (Rank rank = 0; rank < job.ranks(); ++rank) {
        for (int call = 0; call < kCalls; ++call) {
            works.push_back(job.start(rank, sumOf(buffers[call][rank]), way(1 + call % 3, 2)));
            job.step(rank);
        }
    }
    const auto areIdle = [&] {
        return std::all_of(works.begin(), works.end(),
                           [](const auto& work) { return work->isDone(); });
    };
    ASSERT_TRUE(job.runFor(areIdle, seconds(5)));
    for (const auto& work : works) EXPECT_TRUE(work->status().ok()) << work->status().what();
    for (const auto& call : buffers) {
        for (const auto& buffer : call) EXPECT_TRUE(isFilledWith(buffer, sum(job)));
    }
}

// A leader is through when it has told the others, who may read what it showed much later.
TEST(Leaders, MayGoOnWhileOthersStillReadWhatTheyShow) {
    EngineJob job({0, 0, 1});
    const auto fromFirst = [](std::vector<float>& numbers) {
        CallRequest call = sumOf(numbers);
        call.collective = Collective::kBroadcast;
        return call;
    };
    std::vector<std::vector<float>> numbers = {std::vector<float>(1000, 1),
                                               std::vector<float>(1000), std::vector<float>(1000)};
    std::vector<float> next(1000, 2);
    const Way way{"two_level_leaders"};
    const auto late = job.start(1, fromFirst(numbers[1]), way);
    job.step(1);  // it has entered, and stands still from now on
    job.stop(1);
    const auto far = job.start(2, fromFirst(numbers[2]), way);
    const auto first = job.start(0, fromFirst(numbers[0]), way);
    ASSERT_TRUE(job.runFor([&] { return first->isDone(); }, seconds(1)));
    job.start(0, fromFirst(next), way);
    job.settle();
    EXPECT_FALSE(late->isDone());
    job.letGo(1);
    ASSERT_TRUE(job.runFor([&] { return late->isDone() && far->isDone(); }, seconds(1)));
    EXPECT_TRUE(isFilledWith(numbers[1], 1));
    EXPECT_TRUE(isFilledWith(numbers[2], 1));
}

TEST(Windows, HoldNoMoreSegmentsThanTheyHaveSlots) {
    EngineJob job({0, 0});
    constexpr int kSegments = 7;
    constexpr int kWindow = 3;
    std::vector<float> mine(1000, 1);
    std::vector<float> theirs(1000, 2);
    const Way way{"direct", kSegments, kWindow};
    const auto first = job.start(0, sumOf(mine), way);
    const auto second = job.start(1, sumOf(theirs), way);
    job.step(1);  // it has entered, and stands still from now on
    job.stop(1);
    EXPECT_FALSE(job.runFor([&] { return first->isDone(); }, seconds(1)));
    const auto& raised = job.group(0).myBlock().line(1).raised[0];
    for (int slot = 0; slot < kWindow; ++slot) EXPECT_GT(raised[slot], 0U) << slot;
    EXPECT_EQ(raised[kWindow], 0U);
    const std::uint64_t perSegment = [&] {
        PlanRequest request;
        request.collective = Collective::kAllReduce;
        request.mapping = Mapping::kShared;
        request.algorithm = way.algorithm;
        std::uint64_t signals = 0;
        const auto plan = makePlan(Layout::of({0, 0}), request);
        for (const Step& step : plan->steps) signals += step.verb == Verb::kSignal ? 1 : 0;
        return signals;
    }();
    ASSERT_GT(perSegment, 0U);
    job.letGo(1);
    EXPECT_TRUE(job.runFor([&] { return first->isDone() && second->isDone(); }, seconds(1)));
    // Segments 0, 3 and 6 were slot 0's; 1 and 4 slot 1's; 2 and 5 slot 2's.
    EXPECT_EQ(raised[0], 3 * perSegment);
    EXPECT_EQ(raised[1], 2 * perSegment);
    EXPECT_EQ(raised[2], 2 * perSegment);
    EXPECT_EQ(raised[3], 0U);
}

/// Slots of rank 0's calls that are published to its node, by lane; 0: none yet.
std::vector<std::uint64_t> published(EngineJob& job) {
    std::vector<std::uint64_t> numbers;
    const Membership& group = job.group(0);
    for (int lane = 0; lane < kLanes; ++lane)
        numbers.push_back(group.slotOf(group.myPosition(), lane).sequence);
    return numbers;
}

TEST(Calls, AreBegunInOrderAndFourRunAtOnce) {
    EngineJob job({0, 0});
    std::vector<std::vector<float>> buffers(6, std::vector<float>(10, 1));
    for (auto& buffer : buffers) job.start(0, sumOf(buffer), {"direct"});
    job.settle();
    EXPECT_EQ(published(job), (std::vector<std::uint64_t>{1, 2, 3, 4, 0, 0, 0, 0}));
    std::vector<std::vector<float>> others(6, std::vector<float>(10, 1));
    job.start(1, sumOf(others[0]), {"direct"});
    job.settle();
    EXPECT_EQ(published(job), (std::vector<std::uint64_t>{1, 2, 3, 4, 5, 0, 0, 0}));
    EXPECT_TRUE(isFilledWith(buffers[0], 2));
    EXPECT_TRUE(isFilledWith(buffers[1], 1));
    for (int i = 1; i < 6; ++i) job.start(1, sumOf(others[i]), {"direct"});
    job.settle();
    EXPECT_EQ(published(job), (std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6, 0, 0}));
    for (const auto& buffer : buffers) EXPECT_TRUE(isFilledWith(buffer, 2));
}

CallRequest broadcastOf(std::span<float> buffer) {
    CallRequest call = sumOf(buffer);
    call.collective = Collective::kBroadcast;
    return call;
}

// Call 0 waits for rank 2 on another node, those behind it do not: they end before it, until its
// lane comes round again.
TEST(Calls, WaitForTheirLane) {
    EngineJob job({0, 0, 1});
    constexpr int kCalls = 12;
    std::vector<std::vector<float>> buffers;
    std::vector<std::shared_ptr<Work>> works;
    for (Rank rank = 0; rank < 2; ++rank) {
        for (int call = 0; call < kCalls; ++call) {
            buffers.emplace_back(100, static_cast<float>(rank == 0 ? call : -1));
            works.push_back(call == 0 ? job.start(rank, sumOf(buffers.back()), {"ring"})
                                      : job.start(rank, broadcastOf(buffers.back()), {"chain"}));
        }
    }
    job.stop(2);
    EXPECT_FALSE(job.runFor([] { return false; }, seconds(1)));
    for (Rank rank = 0; rank < 2; ++rank) {
        EXPECT_FALSE(works[rank * kCalls]->isDone());
        for (int call = 1; call < kCalls; ++call) {
            EXPECT_EQ(works[rank * kCalls + call]->isDone(), call < kLanes)
                << "rank " << rank << " call " << call;
        }
    }
    EXPECT_EQ(published(job), (std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6, 7, 8}));
    job.letGo(2);
    std::vector<std::vector<float>> theirs(kCalls, std::vector<float>(100, 5));
    for (int call = 0; call < kCalls; ++call) {
        works.push_back(call == 0 ? job.start(2, sumOf(theirs[call]), {"ring"})
                                  : job.start(2, broadcastOf(theirs[call]), {"chain"}));
    }
    const auto areDone = [&] {
        return std::all_of(works.begin(), works.end(),
                           [](const auto& work) { return work->isDone(); });
    };
    ASSERT_TRUE(job.runFor(areDone, seconds(5)));
    EXPECT_TRUE(isFilledWith(theirs[0], 0 - 1 + 5));
    for (int call = 1; call < kCalls; ++call) {
        EXPECT_TRUE(isFilledWith(theirs[call], static_cast<float>(call)));
        EXPECT_TRUE(isFilledWith(buffers[kCalls + call], static_cast<float>(call)));
    }
}

// A ring of three sends (3 - 1) * 2 thirds of the payload from each rank, one after another: 4
// messages of 1 MB at 1 GB/s take 4 ms, and what the latencies add is little.
TEST(Calls, TakeTheVirtualTimeOfTheirMessages) {
    SimLink link;
    link.bytesPerSecond = 1e9;
    link.latency = microseconds(10);
    EngineJob job({0, 1, 2}, link);
    std::vector<std::vector<float>> buffers(3, std::vector<float>(750'000, 1));
    std::vector<std::shared_ptr<Work>> works;
    const Time begin = job.now();
    for (Rank rank = 0; rank < 3; ++rank) {
        works.push_back(job.start(rank, sumOf(buffers[rank]), {"ring"}));
    }
    ASSERT_TRUE(job.runFor([&] { return works[0]->isDone(); }, seconds(1)));
    EXPECT_GE(job.now() - begin, microseconds(4000));
    EXPECT_LT(job.now() - begin, microseconds(4800));
}

// A task that found the engine in use comes before what its thread begins afterwards.
TEST(Tasks, KeepTheirOrder) {
    EngineJob job({0});
    Engine& engine = job.engine(0);
    std::vector<int> order;
    engine.withToken([&] { engine.submit([&] { order.push_back(1); }); });
    engine.withToken([&] { order.push_back(2); });
    engine.poll();
    EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

}  // namespace
}  // namespace isthmus::test
