// Calls that meet once: small ones, and barriers.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "tests/unit/engine/engine_job.hpp"

namespace isthmus::test {
namespace {

CompiledPlan compiledFor(const Algorithm& algorithm, Mapping mapping, Rank me) {
    PlanRequest request;
    request.collective = algorithm.collective;
    request.algorithm = algorithm.name;
    request.mapping = mapping;
    request.me = me;
    auto plan = makePlan(Layout::of({0, 0, 0}), request);
    EXPECT_TRUE(plan.ok()) << plan.status().what();
    return CompiledPlan::of(std::move(*plan), {0, 1, 2}, 3);
}

TEST(Meetings, AreTheInlinePlansAndTheBarrierInSharedMemory) {
    const Layout layout = Layout::of({0, 0, 0});
    int meetings = 0;
    for (const Algorithm& algorithm : catalogue()) {
        if (!algorithm.fits(layout)) continue;
        const bool isMeeting =
            algorithm.name == "inline" ||
            (algorithm.name == "direct" && algorithm.collective == Collective::kBarrier);
        for (const Mapping mapping : algorithm.mappings) {
            for (const Rank me : {0, 1, 2}) {
                EXPECT_EQ(compiledFor(algorithm, mapping, me).meetsOnce(), isMeeting)
                    << nameOf(algorithm.collective) << " " << algorithm.name << " rank " << me;
            }
        }
        meetings += isMeeting ? 1 : 0;
    }
    EXPECT_EQ(meetings, kCollectives);  // each has an inline form, but for the barrier's direct one
}

TEST(Meetings, ShowASmallOperandInTheLineThatTellsOfTheCall) {
    EngineJob job({0, 0});
    std::vector<float> numbers = {1, 2, 3, 4, 5, 6, 7, 8};  // 32 bytes
    job.start(0, sumOf(numbers), {"inline"});
    job.step(0);
    const CallSlot& slot = job.group(0).slotOf(job.group(0).myPosition(), 0);
    EXPECT_EQ(slot.sequence, 1U);
    std::vector<float> shown(numbers.size());
    std::memcpy(shown.data(), reinterpret_cast<const std::byte*>(&slot) + 32, 32);
    EXPECT_EQ(shown, numbers);
}

TEST(Meetings, EndInTheStepThatFindsEverybody) {
    EngineJob job({0, 0, 0});
    std::vector<std::vector<float>> numbers = {{1, 10}, {2, 20}, {4, 40}};
    std::vector<std::shared_ptr<Work>> works;
    for (const Rank rank : {0, 1, 2}) {
        works.push_back(job.start(rank, sumOf(numbers[rank]), {"inline"}));
        job.step(rank);
    }
    EXPECT_FALSE(works[0]->isDone());
    EXPECT_TRUE(works[2]->isDone());
    job.step(0);
    job.step(1);
    for (const Rank rank : {0, 1, 2}) {
        ASSERT_TRUE(works[rank]->isDone()) << rank;
        EXPECT_EQ(numbers[rank], (std::vector<float>{7, 70}));
    }
}

TEST(Meetings, TakeTheSizesOfEachCallAnew) {
    EngineJob job({0, 0, 0});
    for (const std::size_t elements : {1, 1, 5, 0, 5, 16, 1, 3, 3, 0, 7, 2}) {
        std::vector<std::vector<float>> numbers;
        std::vector<std::shared_ptr<Work>> works;
        for (const Rank rank : {0, 1, 2}) {
            numbers.emplace_back(elements);
            std::iota(numbers[rank].begin(), numbers[rank].end(), static_cast<float>(10 * rank));
        }
        for (const Rank rank : {0, 1, 2})
            works.push_back(job.start(rank, sumOf(numbers[rank]), {"inline"}));
        job.settle();
        for (const Rank rank : {0, 1, 2}) {
            ASSERT_TRUE(works[rank]->isDone() && works[rank]->status().ok()) << elements;
            for (std::size_t i = 0; i < elements; ++i)
                ASSERT_EQ(numbers[rank][i], 30.0F + 3.0F * static_cast<float>(i)) << elements;
        }
    }
}

TEST(Meetings, LookAtTheNodesMemoryOnly) {
    EngineJob job({0, 0});
    std::vector<float> mine = {1};
    std::vector<float> theirs = {2};
    const auto work = job.start(0, sumOf(mine), {"inline"});
    job.step(0);
    EXPECT_FALSE(job.group(0).mayMove());  // nobody has come
    job.start(1, sumOf(theirs), {"inline"});
    job.step(1);
    EXPECT_TRUE(job.group(0).mayMove());
    job.step(0);
    EXPECT_TRUE(work->isDone());
    EXPECT_FALSE(job.group(0).mayMove());  // nothing is left
}

// Peers that do not answer, stopped ones for example, hold the buffers of other calls for 500 ms.
TEST(Meetings, FailWithoutWaitingForPeersToStop) {
    EngineJob job({0, 0});
    std::vector<float> small = {1};
    const std::span<float> large = job.mapped(0, 5000, 1);
    const auto meets = job.start(0, sumOf(small), {"inline"});
    const auto shares = job.start(0, sumOf(large), {"direct"});
    job.step(0);
    job.group(0).fail(Status::timeout("nobody came"));
    job.step(0);
    ASSERT_TRUE(meets->isDone());
    EXPECT_EQ(meets->status().code(), Status::Code::kTimeout);
    EXPECT_FALSE(shares->isDone());
}

}  // namespace
}  // namespace isthmus::test
