// Ranks that do not mean the same call (NUM-26, NUM-27, HANG-16, HANG-18): every one of them hears
// of both calls within a second, and the communicator is failed and says so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <ostream>
#include <thread>

#include "tests/conformance/disagreement/kinds.hpp"
#include "tests/support/local_job.hpp"
#include "tests/unit/capi/comm_of.hpp"

namespace isthmus::test {

// For the names of test cases in output; found by argument-dependent lookup.
std::ostream& operator<<(std::ostream& out, const Kind& kind) {
    return out << kind.name;
}

namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;

struct Way {
    const char* name;
    std::vector<int> nodes;
    LocalJob::Wires wires;
};

const Way kWays[] = {
    {"Shm", {0, 0, 0, 0}, LocalJob::Wires::kShm},
    {"Tcp", {0, 0, 0, 0}, LocalJob::Wires::kTcp},
    {"TwoLevel", {0, 0, 1, 1}, LocalJob::Wires::kReal},
};

class Disagreement : public testing::TestWithParam<Way> {
protected:
    static CommunicatorConfig config() {
        CommunicatorConfig config;
        config.name = "dp";
        config.globalRanks = {std::begin(kGlobalRanks), std::end(kGlobalRanks)};
        return config;
    }

    /// Its part in `kind`, then in barriers until it hears of it: who only sends may be through
    /// before the others can object, and so may a barrier of one node, which reads no messages.
    static isthmusResult_t callAt(Caller& caller, const Kind& kind) {
        const isthmusResult_t result = (caller.rank == kOdd ? kind.odd : kind.usual)(caller);
        if (result != isthmusSuccess) return result;
        isthmusCallOptions_t plain = ISTHMUS_CALL_OPTIONS_INITIALIZER;
        plain.name = caller.options.name;
        const auto start = std::chrono::steady_clock::now();
        do {
            const isthmusResult_t next = isthmusBarrier(caller.comm, &plain, nullptr);
            if (next != isthmusSuccess) return next;
        } while (std::chrono::steady_clock::now() - start < milliseconds(900));
        return isthmusSuccess;
    }

    static void expectHeard(Caller& caller, const Kind& kind) {
        const auto start = std::chrono::steady_clock::now();
        const isthmusResult_t result = callAt(caller, kind);
        const std::string text = lastError();
        EXPECT_LT(std::chrono::steady_clock::now() - start, milliseconds(1000));
        EXPECT_EQ(result, isthmusMismatch) << text;
        EXPECT_THAT(
            text, AllOf(HasSubstr(kind.usualText), HasSubstr(kind.oddText), HasSubstr("rank 12 ("),
                        HasSubstr("\"dp\""), HasSubstr("named \"bucket7\"")));
        if (kind.name.find("Message") != 0) {
            EXPECT_THAT(text, HasSubstr(" #1 on "));
        }
        isthmusResult_t later = isthmusSuccess;
        EXPECT_EQ(isthmusCommGetAsyncError(caller.comm, &later), isthmusSuccess);
        EXPECT_EQ(later, isthmusMismatch);
        EXPECT_EQ(isthmusBarrier(caller.comm, nullptr, nullptr), isthmusMismatch);
        EXPECT_EQ(lastError(), text);
    }

    /// Calls before are over on all ranks before anybody disagrees.
    void expectHeardByAll(const Kind& kind) const {
        LocalJob job(GetParam().nodes, {}, GetParam().wires);
        std::atomic<int> ready{0};
        job.run(
            [&](Rank rank, Communicator& communicator) {
                CommOf comm(communicator);
                Caller caller{comm, rank, std::vector<double>(1 << 19, 1),
                              std::vector<double>(1 << 19, 0), ISTHMUS_CALL_OPTIONS_INITIALIZER};
                caller.options.name = "bucket7";
                ASSERT_EQ(isthmusBarrier(comm, nullptr, nullptr), isthmusSuccess) << lastError();
                ++ready;
                while (ready < 4) std::this_thread::yield();
                expectHeard(caller, kind);
            },
            config());
    }
};

class Absence : public Disagreement {};

INSTANTIATE_TEST_SUITE_P(Ways, Absence, testing::Values(kWays[0], kWays[2]),
                         [](const auto& test) { return std::string(test.param.name); });

// https://github.com/jax-ml/jax/issues/40831: one limit, and every call keeps it.
TEST_P(Absence, EndsEveryCallAtItsLimitWithTheNameOfWhoIsMissing) {  // HANG-13
    for (const Kind& kind : allKinds()) {
        if (kind.name.rfind("AllReduceAnd", 0) != 0) continue;  // one of each collective
        SCOPED_TRACE(kind.name);
        LocalJob job(GetParam().nodes, {}, GetParam().wires);
        std::atomic<int> through{0};
        job.run(
            [&](Rank rank, Communicator& communicator) {
                CommOf comm(communicator);
                Caller caller{comm, rank, std::vector<double>(1 << 14, 1),
                              std::vector<double>(1 << 14, 0), ISTHMUS_CALL_OPTIONS_INITIALIZER};
                ASSERT_EQ(isthmusBarrier(comm, nullptr, nullptr), isthmusSuccess) << lastError();
                isthmusResult_t result = isthmusSuccess;
                if (rank != kOdd) {
                    caller.options.timeout_ms = 200;
                    const auto start = std::chrono::steady_clock::now();
                    result = kind.odd(caller);
                    // Whose part is done goes on; those in the call know best who is missing, and
                    // their limit ends before that of the barrier.
                    caller.options.timeout_ms = 1000;
                    if (result == isthmusSuccess)
                        result = isthmusBarrier(comm, &caller.options, nullptr);
                    EXPECT_LT(std::chrono::steady_clock::now() - start, milliseconds(1500));
                    EXPECT_EQ(result, isthmusTimeout);
                    EXPECT_THAT(lastError(), HasSubstr("gave up on rank 12 ("));
                }
                ++through;
                while (through < 4) std::this_thread::sleep_for(milliseconds(1));
            },
            config());
    }
}

INSTANTIATE_TEST_SUITE_P(Ways, Disagreement, testing::ValuesIn(kWays),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_P(Disagreement, IsHeardByAllWithBothCallsAndTheirNames) {
    int tried = 0;
    for (const Kind& kind : allKinds()) {
        SCOPED_TRACE(kind.name);
        expectHeardByAll(kind);
        ++tried;
    }
    EXPECT_GE(tried, 60);
}

}  // namespace
}  // namespace isthmus::test
