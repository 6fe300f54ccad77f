// Small blocking calls of the C API, many in a row: they take a short way of their own, and other
// calls come between them.
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "tests/support/local_job.hpp"
#include "tests/unit/capi/comm_of.hpp"

namespace isthmus::test {
namespace {

constexpr int kRanks = 3;
constexpr int kRounds = 40;

/// Every collective once, with values that tell rank, round and place; sums of three ranks' values
/// base + rank are 3 base + 3.
class Small {
public:
    Small(isthmusComm_t comm, int rank) : comm_(comm), rank_(rank) {}

    void round(int number) {
        const int base = 100 * number;
        const int root = number % kRanks;
        std::vector<int> mine = {base + rank_, base + rank_};
        check(isthmusAllReduce(mine.data(), mine.data(), 2, isthmusInt, isthmusSum, comm_, nullptr,
                               nullptr));
        EXPECT_EQ(mine, std::vector<int>(2, 3 * base + 3));

        std::vector<int> all(kRanks);
        const int one = base + rank_;
        check(isthmusAllGather(&one, all.data(), 1, isthmusInt, comm_, nullptr, nullptr));
        EXPECT_EQ(all, (std::vector<int>{base, base + 1, base + 2}));

        const std::vector<int> blocks = {base + 10 * rank_, base + 10 * rank_ + 1,
                                         base + 10 * rank_ + 2};
        std::vector<int> swapped(kRanks);
        check(
            isthmusAlltoAll(blocks.data(), swapped.data(), 1, isthmusInt, comm_, nullptr, nullptr));
        EXPECT_EQ(swapped, (std::vector<int>{base + rank_, base + 10 + rank_, base + 20 + rank_}));

        int sum = 0;
        check(isthmusReduceScatter(blocks.data(), &sum, 1, isthmusInt, isthmusSum, comm_, nullptr,
                                   nullptr));
        EXPECT_EQ(sum, 3 * base + 30 + 3 * rank_);

        int told = rank_ == root ? base + 7 : 0;
        check(isthmusBroadcast(&told, &told, 1, isthmusInt, root, comm_, nullptr, nullptr));
        EXPECT_EQ(told, base + 7);

        int most = -1;
        check(isthmusReduce(&one, &most, 1, isthmusInt, isthmusMax, root, comm_, nullptr, nullptr));
        EXPECT_EQ(most, rank_ == root ? base + 2 : -1);

        int part = 0;
        check(isthmusScatter(all.data(), &part, 1, isthmusInt, root, comm_, nullptr, nullptr));
        EXPECT_EQ(part, base + rank_);
        std::vector<int> gathered(kRanks, -1);
        check(isthmusGather(&part, gathered.data(), 1, isthmusInt, root, comm_, nullptr, nullptr));
        EXPECT_EQ(gathered, rank_ == root ? all : std::vector<int>(kRanks, -1));
        check(isthmusBarrier(comm_, nullptr, nullptr));
    }

    /// Begun before and ended after the next round.
    void begin(std::vector<int>& numbers, isthmusRequest_t* request) {
        std::iota(numbers.begin(), numbers.end(), rank_);
        check(isthmusAllReduce(numbers.data(), numbers.data(), numbers.size(), isthmusInt,
                               isthmusSum, comm_, nullptr, request));
    }

    void check(isthmusResult_t result) { ASSERT_EQ(result, isthmusSuccess) << lastError(); }

private:
    isthmusComm_t comm_;
    int rank_;
};

TEST(SmallCalls, AreRightInARow) {
    LocalJob job(std::vector<int>(kRanks, 0));
    job.run([](Rank rank, Communicator& communicator) {
        CommOf comm(communicator);
        Small calls(comm, rank);
        for (int number = 0; number < kRounds; ++number) calls.round(number);
    });
}

TEST(SmallCalls, AreRightBetweenCallsInFlight) {
    LocalJob job(std::vector<int>(kRanks, 0));
    job.run([](Rank rank, Communicator& communicator) {
        CommOf comm(communicator);
        Small calls(comm, rank);
        for (int number = 0; number < kRounds; ++number) {
            std::vector<int> numbers(number % 2 == 0 ? 3 : 30000);
            isthmusRequest_t request = nullptr;
            calls.begin(numbers, &request);
            calls.round(number);
            calls.check(isthmusWait(&request, 0));
            EXPECT_EQ(numbers[2], 9);  // 2 + 3 + 4
        }
    });
}

TEST(SmallCalls, OfTwoCommunicatorsDoNotMeet) {
    LocalJob job(std::vector<int>(kRanks, 0));
    job.run([](Rank rank, Communicator& communicator) {
        auto half = communicator.split(rank == 2 ? 1 : 0, rank, {});
        ASSERT_TRUE(half.ok());
        CommOf all(communicator);
        CommOf part(**half);
        Small calls(all, rank);
        for (int number = 0; number < kRounds; ++number) {
            calls.round(number);
            int sum = 1;
            calls.check(
                isthmusAllReduce(&sum, &sum, 1, isthmusInt, isthmusSum, part, nullptr, nullptr));
            EXPECT_EQ(sum, rank == 2 ? 1 : 2);
        }
    });
}

TEST(SmallCalls, ThatAreWrongSayWhatIs) {
    LocalJob job(std::vector<int>(kRanks, 0));
    job.run(
        [](Rank rank, Communicator& communicator) {
            CommOf comm(communicator);
            for (int i = 0; i < 4; ++i) {
                float number = 1;
                Small(comm, rank)
                    .check(isthmusAllReduce(&number, &number, 1, isthmusFloat, isthmusSum, comm,
                                            nullptr, nullptr));
                EXPECT_EQ(isthmusAllReduce(&number, nullptr, 1, isthmusFloat, isthmusSum, comm,
                                           nullptr, nullptr),
                          isthmusInvalidArgument);
                EXPECT_EQ(lastError(), "\"comm0\": all_reduce: the receive buffer is null");
                EXPECT_EQ(isthmusBroadcast(&number, &number, 1, isthmusFloat, kRanks, comm, nullptr,
                                           nullptr),
                          isthmusInvalidArgument);
                EXPECT_EQ(isthmusAllReduce(&number, &number, 1, isthmusFloat, isthmusBand, comm,
                                           nullptr, nullptr),
                          isthmusInvalidArgument);
            }
        },
        {.name = "comm0"});
}

}  // namespace
}  // namespace isthmus::test
