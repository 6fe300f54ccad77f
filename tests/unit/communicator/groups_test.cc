// Communicators made from others, and several at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <vector>

#include "tests/support/local_job.hpp"
#include "tests/unit/communicator/calls.hpp"

namespace isthmus::test {
namespace {

using testing::HasSubstr;

CommunicatorConfig named(const char* name) {
    CommunicatorConfig config;
    config.name = name;
    return config;
}

std::vector<int> gatheredRanks(Communicator& whole, Communicator& part) {
    const std::vector<int> mine = {whole.rank()};
    std::vector<int> all(part.ranks(), -1);
    const auto work = part.call(callOf(Collective::kAllGather, mine, all, 1), blocking());
    EXPECT_TRUE(work->status().ok()) << work->status().what();
    return all;
}

TEST(Split, FormsOneCommunicatorPerColourOrderedByKey) {
    LocalJob job({0, 0, 0, 1, 1, 2});
    job.run([](Rank rank, Communicator& communicator) {
        auto parity = communicator.split(rank % 2, -rank, named("parity"));
        ASSERT_TRUE(parity.ok()) << parity.status().what();
        // Keys fall with the rank: the order is turned round.
        EXPECT_EQ(gatheredRanks(communicator, **parity),
                  rank % 2 == 0 ? (std::vector<int>{4, 2, 0}) : (std::vector<int>{5, 3, 1}));
        EXPECT_TRUE(sums(**parity));
        EXPECT_TRUE(sums(communicator));
    });
}

TEST(Split, BreaksTiesByRankAndLeavesNegativeColoursOut) {
    LocalJob job({0, 1, 0, 1});
    job.run([](Rank rank, Communicator& communicator) {
        auto part = communicator.split(rank == 2 ? -1 : 7, 0, {});
        ASSERT_TRUE(part.ok()) << part.status().what();
        EXPECT_EQ(*part == nullptr, rank == 2);
        if (*part != nullptr) {
            EXPECT_EQ(gatheredRanks(communicator, **part), (std::vector<int>{0, 1, 3}));
        }
        EXPECT_TRUE(sums(communicator));
    });
}

TEST(Split, MakesGroupsOfOneThatWork) {  // NUM-05
    LocalJob job({0, 0, 1, 1});
    job.run([](Rank rank, Communicator& communicator) {
        auto alone = communicator.split(rank, 0, {});
        ASSERT_TRUE(alone.ok()) << alone.status().what();
        EXPECT_EQ((*alone)->ranks(), 1);
        std::vector<float> in = {3, 5};
        std::vector<float> out = {0, 0};
        for (int collective = 0; collective < kCollectives; ++collective) {
            CallRequest request = callOf(static_cast<Collective>(collective), in, out, 2);
            request.op = ReduceOp::kAvg;
            const auto work = (*alone)->call(std::move(request), blocking());
            ASSERT_TRUE(work->status().ok()) << work->status().what();
            if (static_cast<Collective>(collective) == Collective::kBarrier) continue;
            EXPECT_EQ(out, in) << nameOf(static_cast<Collective>(collective));
            out = {0, 0};
        }
    });
}

TEST(Split, MayBeSplitAgain) {
    LocalJob job({0, 0, 0, 1, 1, 2});
    job.run([](Rank rank, Communicator& communicator) {
        auto half = communicator.split(rank / 3, 0, {});
        ASSERT_TRUE(half.ok());
        auto rest = (*half)->split((*half)->rank() == 0 ? -1 : 0, 0, {});
        ASSERT_TRUE(rest.ok()) << rest.status().what();
        if (*rest == nullptr) return;
        EXPECT_EQ(gatheredRanks(communicator, **rest),
                  rank < 3 ? (std::vector<int>{1, 2}) : (std::vector<int>{4, 5}));
    });
}

// https://github.com/pytorch/pytorch/issues/149200
TEST(Split, TakesRootsInItsOwnNumbersAndSpeaksInGlobalOnes) {  // NUM-29
    LocalJob job({0, 0, 1, 1});
    job.run([](Rank rank, Communicator& communicator) {
        // Group {3, 1}: group rank 0 is rank 3.
        auto part = communicator.split(rank % 2 == 1 ? 0 : -1, -rank, named("odd"));
        ASSERT_TRUE(part.ok());
        if (*part == nullptr) return;
        Communicator& odd = **part;
        std::vector<int> buffer = {rank * 10};
        for (Rank root = 0; root < 2; ++root) {
            std::vector<int> copy = buffer;
            CallRequest request = callOf(Collective::kBroadcast, copy, copy, 1, root);
            ASSERT_TRUE(odd.call(std::move(request), blocking())->status().ok());
            EXPECT_EQ(copy[0], root == 0 ? 30 : 10);
        }
        const auto wrong = odd.call(callOf(Collective::kBroadcast, buffer, buffer, 1, 3), {});
        EXPECT_EQ(wrong->status().code(), Status::Code::kInvalidArgument);
        EXPECT_THAT(wrong->status().what(), HasSubstr("root 3"));
        // Who did not come is named in global numbers.
        if (rank == 3) return;
        const auto late = odd.call(allReduceOf(buffer), blocking(std::chrono::milliseconds(150)));
        EXPECT_THAT(late->status().what(), HasSubstr("rank 3 ("));
        EXPECT_THAT(late->status().what(), HasSubstr("\"odd\""));
    });
}

TEST(Communicators, RunSideBySideInDifferentOrders) {
    LocalJob job({0, 0, 1});
    job.run([](Rank rank, Communicator& communicator) {
        auto other = communicator.split(0, 0, {});
        ASSERT_TRUE(other.ok());
        std::vector<float> one(1000, 1);
        std::vector<float> two(3000, 2);
        // Rank 0 begins them the other way round: calls of different communicators have no order.
        Communicator& first = rank == 0 ? communicator : **other;
        Communicator& second = rank == 0 ? **other : communicator;
        const auto a = first.call(allReduceOf(rank == 0 ? one : two), {});
        const auto b = second.call(allReduceOf(rank == 0 ? two : one), {});
        ASSERT_TRUE(endOf(second, b).ok());
        ASSERT_TRUE(endOf(first, a).ok());
        EXPECT_EQ(one, std::vector<float>(1000, 3));
        EXPECT_EQ(two, std::vector<float>(3000, 6));
    });
}

// https://github.com/KempnerInstitute/KempnerForge/issues/104 (HANG-18): one communicator each.
TEST(Communicators, ServeAThreadEachAtTheSameTime) {
    LocalJob job({0, 1});
    job.run([](Rank, Communicator& communicator) {
        auto other = communicator.split(0, 0, {});
        ASSERT_TRUE(other.ok());
        std::thread background([&] {
            for (int i = 0; i < 200; ++i) ASSERT_TRUE(sums(**other, 100));
        });
        for (int i = 0; i < 200; ++i) EXPECT_TRUE(sums(communicator, 1));
        background.join();
    });
}

TEST(Communicators, TakeCallsOfTwoThreadsThatAgreeOnAnOrder) {
    LocalJob job({0, 0, 1});
    job.run([](Rank, Communicator& communicator) {
        std::mutex mutex;
        int next = 0;
        const auto worker = [&] {
            while (true) {
                std::shared_ptr<Work> work;
                std::vector<int> buffer;
                int number = 0;
                {
                    const std::lock_guard lock(mutex);
                    if (next == 200) return;
                    number = next++;
                    buffer.assign(number % 7 + 1, number);
                    work = communicator.call(allReduceOf(buffer), {});
                }
                ASSERT_TRUE(endOf(communicator, work).ok()) << work->status().what();
                ASSERT_EQ(buffer, std::vector<int>(number % 7 + 1, 3 * number));
            }
        };
        std::thread other(worker);
        worker();
        other.join();
    });
}

}  // namespace
}  // namespace isthmus::test
