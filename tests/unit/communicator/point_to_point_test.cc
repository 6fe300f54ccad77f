// Sends and receives over one node, two nodes and three unequal ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "tests/support/local_job.hpp"
#include "tests/unit/communicator/calls.hpp"

namespace isthmus::test {
namespace {

using testing::HasSubstr;

class PointToPointOver : public testing::TestWithParam<std::vector<int>> {};

INSTANTIATE_TEST_SUITE_P(Layouts, PointToPointOver,
                         testing::Values(std::vector<int>{0, 0}, std::vector<int>{0, 1},
                                         std::vector<int>{0, 0, 0, 1, 1, 2}),
                         [](const auto& test) {
                             return std::to_string(test.param.size()) + "Ranks" +
                                    std::to_string(test.param.back() + 1) + "Nodes";
                         });

std::vector<int> numbersFrom(int first, std::size_t count) {
    std::vector<int> numbers(count);
    std::iota(numbers.begin(), numbers.end(), first);
    return numbers;
}

TEST_P(PointToPointOver, MovesEverySizeRoundTheCircle) {
    LocalJob job(GetParam());
    job.run([&](Rank rank, Communicator& communicator) {
        const int ranks = communicator.ranks();
        for (const std::size_t count : {0, 1, 17, 5000, 300001}) {
            const auto mine = numbersFrom(rank * 1000000, count);
            std::vector<int> theirs(count, -1);
            const Rank before = (rank + ranks - 1) % ranks;
            const auto receive = communicator.transfer(recvOf(theirs, before, 3), {});
            const auto send =
                communicator.transfer(sendOf(mine, (rank + 1) % ranks, 3), blocking());
            ASSERT_TRUE(send->status().ok()) << send->status().what();
            ASSERT_TRUE(endOf(communicator, receive).ok()) << receive->status().what();
            EXPECT_EQ(receive->source(), before);
            EXPECT_EQ(theirs, numbersFrom(before * 1000000, count));
        }
    });
}

TEST_P(PointToPointOver, MatchesByTagAndKeepsOrderWithinOne) {
    LocalJob job(GetParam());
    job.run([](Rank rank, Communicator& communicator) {
        if (rank > 1) return;
        constexpr int kMessages = 20;
        std::vector<std::shared_ptr<Work>> works;
        std::vector<std::vector<int>> buffers;
        for (int i = 0; i < 2 * kMessages; ++i) buffers.emplace_back(1, rank == 0 ? i : -1);
        for (int i = 0; i < 2 * kMessages; ++i) {
            // Sent: tags 7 and 8 in turn. Received: all of tag 8 first.
            if (rank == 0) {
                works.push_back(communicator.transfer(
                    sendOf(buffers[i], 1, static_cast<std::uint32_t>(7 + i % 2)), {}));
            } else {
                works.push_back(communicator.transfer(
                    recvOf(buffers[i], 0, static_cast<std::uint32_t>(i < kMessages ? 8 : 7)), {}));
            }
        }
        for (const auto& work : works) ASSERT_TRUE(endOf(communicator, work).ok());
        if (rank == 0) return;
        for (int i = 0; i < kMessages; ++i) {
            EXPECT_EQ(buffers[i], std::vector<int>{2 * i + 1});
            EXPECT_EQ(buffers[kMessages + i], std::vector<int>{2 * i});
        }
    });
}

TEST_P(PointToPointOver, TakesFromAnySourceAndNamesIt) {
    LocalJob job(GetParam());
    job.run([](Rank rank, Communicator& communicator) {
        const int ranks = communicator.ranks();
        if (rank != 0) {
            const std::vector<int> mine(100, rank);
            EXPECT_TRUE(communicator.transfer(sendOf(mine, 0, 5), blocking())->status().ok());
            return;
        }
        std::vector<bool> isSeen(ranks, false);
        for (int i = 1; i < ranks; ++i) {
            std::vector<int> buffer(100, -1);
            const auto work = communicator.transfer(recvOf(buffer, -1, 5), blocking());
            ASSERT_TRUE(work->status().ok()) << work->status().what();
            const Rank source = work->source();
            ASSERT_GT(source, 0);
            EXPECT_FALSE(isSeen[source]);
            isSeen[source] = true;
            EXPECT_EQ(buffer, std::vector<int>(100, source));
        }
    });
}

TEST_P(PointToPointOver, MixesWithCollectivesInAnyOrder) {
    LocalJob job(GetParam());
    job.run([](Rank rank, Communicator& communicator) {
        if (rank > 1) {
            EXPECT_TRUE(sums(communicator));
            return;
        }
        std::vector<int> buffer(9, 40 + rank);
        // Rank 0 sends before the collective, rank 1 receives after it.
        if (rank == 1) {
            EXPECT_TRUE(sums(communicator));
        }
        const auto work =
            communicator.transfer(rank == 0 ? sendOf(buffer, 1, 1) : recvOf(buffer, 0, 1), {});
        if (rank == 0) {
            EXPECT_TRUE(sums(communicator));
        }
        EXPECT_TRUE(endOf(communicator, work).ok());
        EXPECT_EQ(buffer, std::vector<int>(9, 40));
    });
}

TEST(PointToPoint, SendsToItselfAndFromAnySourceToo) {
    LocalJob job({0, 0});
    job.run([](Rank rank, Communicator& communicator) {
        for (const bool isAny : {false, true}) {
            std::vector<int> to(50, -1);
            const auto from = numbersFrom(rank * 100, 50);
            const auto receive = communicator.transfer(recvOf(to, isAny ? -1 : rank, 2), {});
            ASSERT_TRUE(communicator.transfer(sendOf(from, rank, 2), blocking())->status().ok());
            ASSERT_TRUE(endOf(communicator, receive).ok());
            EXPECT_EQ(receive->source(), rank);
            EXPECT_EQ(to, from);
        }
    });
}

TEST_P(PointToPointOver, NamesBothSizesWhenTheyDiffer) {
    LocalJob job(GetParam());
    job.run([](Rank rank, Communicator& communicator) {
        if (rank > 1) return;
        std::vector<int> buffer(rank == 0 ? 10 : 12, 1);
        const auto start = std::chrono::steady_clock::now();
        const auto work = communicator.transfer(
            rank == 0 ? sendOf(buffer, 1, 4) : recvOf(buffer, 0, 4), blocking());
        EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
        if (rank == 0 && work->status().ok()) return;  // the bytes had left before anybody compared
        EXPECT_EQ(work->status().code(), Status::Code::kMismatch);
        EXPECT_THAT(work->status().what(), HasSubstr("40"));
        EXPECT_THAT(work->status().what(), HasSubstr("48"));
        EXPECT_THAT(work->status().what(), HasSubstr("tag 4"));
    });
}

TEST_P(PointToPointOver, NamesThePeerThatNeverCame) {
    LocalJob job(GetParam());
    CommunicatorConfig config;
    config.name = "pipeline";
    job.run(
        [](Rank rank, Communicator& communicator) {
            if (rank == 0) std::this_thread::sleep_for(std::chrono::milliseconds(500));
            if (rank != 1) return;
            std::vector<int> buffer(4);
            const auto work = communicator.transfer(recvOf(buffer, 0, 11),
                                                    blocking(std::chrono::milliseconds(200)));
            EXPECT_EQ(work->status().code(), Status::Code::kTimeout);
            EXPECT_THAT(work->status().what(), HasSubstr("rank 0 ("));
            EXPECT_THAT(work->status().what(), HasSubstr("recv tag 11"));
            EXPECT_THAT(work->status().what(), HasSubstr("\"pipeline\""));
            EXPECT_THAT(work->status().what(), HasSubstr("200 ms"));
        },
        config);
}

TEST(PointToPoint, RefusesWhatIsWrongBeforeItStarts) {
    LocalJob job({0, 0});
    job.run([](Rank, Communicator& communicator) {
        std::vector<int> buffer(4);
        const auto toNobody = communicator.transfer(sendOf(buffer, 2), {});
        ASSERT_TRUE(toNobody->isDone());
        EXPECT_EQ(toNobody->status().code(), Status::Code::kInvalidArgument);
        EXPECT_THAT(toNobody->status().what(), HasSubstr("peer 2"));
        const auto toAny = communicator.transfer(sendOf(buffer, -1), {});
        EXPECT_EQ(toAny->status().code(), Status::Code::kInvalidArgument);
        PointToPointRequest empty = recvOf(buffer, 0);
        empty.buffer = nullptr;
        EXPECT_EQ(communicator.transfer(std::move(empty), {})->status().code(),
                  Status::Code::kInvalidArgument);
        EXPECT_TRUE(sums(communicator));
    });
}

}  // namespace
}  // namespace isthmus::test
