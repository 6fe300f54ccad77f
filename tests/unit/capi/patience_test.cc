// Calls with a request that first wait for their end (wait_ms).
#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "tests/support/local_job.hpp"
#include "tests/unit/capi/comm_of.hpp"

namespace isthmus::test {
namespace {

using std::chrono::milliseconds;

constexpr int kRanks = 3;
constexpr std::size_t kSmall = 2;      // meets once, from its second call on
constexpr std::size_t kLarge = 40000;  // does not

isthmusCallOptions_t waiting(std::int64_t duration) {
    isthmusCallOptions_t options = ISTHMUS_CALL_OPTIONS_INITIALIZER;
    options.wait_ms = duration;
    return options;
}

class Patience : public testing::TestWithParam<std::size_t> {
protected:
    /// Each element is the sum of the ranks, 3.
    void expectSum(const std::vector<int>& values) {
        EXPECT_EQ(values, std::vector<int>(GetParam(), 3));
    }
    isthmusResult_t sum(std::vector<int>& values, isthmusComm_t comm,
                        const isthmusCallOptions_t& options, isthmusRequest_t* request) {
        return isthmusAllReduce(values.data(), values.data(), values.size(), isthmusInt, isthmusSum,
                                comm, &options, request);
    }
};

TEST_P(Patience, OfACallThatEndsInTimeLeavesNoRequest) {
    LocalJob job(std::vector<int>(kRanks, 0));
    job.run([&](Rank rank, Communicator& communicator) {
        CommOf comm(communicator);
        for (int round = 0; round < 20; ++round) {
            std::vector<int> values(GetParam(), rank);
            auto* request = reinterpret_cast<isthmusRequest_t>(&values);  // whatever lies there
            ASSERT_EQ(sum(values, comm, waiting(20'000), &request), isthmusSuccess) << lastError();
            EXPECT_EQ(request, nullptr);
            expectSum(values);
        }
    });
}

TEST_P(Patience, ThatEndsFirstLeavesARequest) {
    LocalJob job(std::vector<int>(kRanks, 0));
    job.run([&](Rank rank, Communicator& communicator) {
        CommOf comm(communicator);
        for (int round = 0; round < 4; ++round) {
            std::vector<int> values(GetParam(), rank);
            isthmusRequest_t request = nullptr;
            if (rank == 1) std::this_thread::sleep_for(milliseconds(60));
            ASSERT_EQ(sum(values, comm, waiting(rank == 0 ? 1 : 20'000), &request), isthmusSuccess);
            EXPECT_EQ(request != nullptr, rank == 0);
            if (request != nullptr) {
                ASSERT_EQ(isthmusWait(&request, 20'000), isthmusSuccess);
            }
            expectSum(values);
        }
    });
}

TEST_P(Patience, EndsWithTheCallsOwnFailure) {
    LocalJob job(std::vector<int>(kRanks, 0));
    job.run([&](Rank rank, Communicator& communicator) {
        CommOf comm(communicator);
        std::vector<int> values(GetParam(), rank);
        isthmusRequest_t request = nullptr;
        for (int round = 0; round < 2; ++round)
            ASSERT_EQ(sum(values, comm, waiting(20'000), &request), isthmusSuccess);
        isthmusCallOptions_t options = waiting(20'000);
        options.timeout_ms = 50;
        if (rank == 0) {
            EXPECT_EQ(sum(values, comm, options, &request), isthmusTimeout);
            EXPECT_EQ(request, nullptr);
        } else {  // rank 0's failure is theirs, for they never come
            std::this_thread::sleep_for(milliseconds(150));
        }
    });
}

TEST_P(Patience, IsNoneInsideAGroup) {
    LocalJob job(std::vector<int>(kRanks, 0));
    job.run([&](Rank rank, Communicator& communicator) {
        CommOf comm(communicator);
        std::vector<int> values(GetParam(), rank);
        isthmusRequest_t request = nullptr;
        ASSERT_EQ(isthmusGroupStart(), isthmusSuccess);
        ASSERT_EQ(sum(values, comm, waiting(20'000), &request), isthmusSuccess);
        EXPECT_NE(request, nullptr);
        ASSERT_EQ(isthmusGroupEnd(), isthmusSuccess);
        ASSERT_EQ(isthmusWait(&request, 20'000), isthmusSuccess);
        expectSum(values);
    });
}

INSTANTIATE_TEST_SUITE_P(, Patience, testing::Values(kSmall, kLarge));

}  // namespace
}  // namespace isthmus::test
