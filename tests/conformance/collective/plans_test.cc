// Plans that nobody designed, proven and then run by engines over every device. 10,000 of them over
// each: TESTS_WHOLE=1 in the environment.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "comm/base/knobs.hpp"
#include "comm/proof/prove.hpp"
#include "tests/support/random_plans.hpp"
#include "tests/support/rma/device_kinds.hpp"
#include "tests/unit/engine/engine_job.hpp"

namespace isthmus::test {
namespace {

using Values = std::span<std::uint64_t>;

/// A call of all ranks with random values, in memory that node peers map.
class RandomRun {
public:
    RandomRun(EngineJob& job, const RandomCall& call, std::uint64_t seed)
        : job_(job), call_(call), random_(seed), elements_(random_() % 3000) {
        for (Rank rank = 0; rank < job_.ranks(); ++rank) {
            inputs_.push_back(allocate(rank, elements_));
            for (std::uint64_t& value : inputs_.back()) value = random_();
            outputs_.push_back(allocate(rank, elements_ * blocks()));
            for (std::uint64_t& value : outputs_.back()) value = 0x5A5A5A5A5A5A5A5A;
        }
    }
    ~RandomRun() {
        for (Rank rank = 0; rank < job_.ranks(); ++rank) {
            job_.arena(rank).free(inputs_[rank].data());
            job_.arena(rank).free(outputs_[rank].data());
        }
    }

    testing::AssertionResult run() {
        if (!finish()) return testing::AssertionFailure() << "no end";
        for (Rank rank = 0; rank < job_.ranks(); ++rank) {
            const Status& status = works_[rank]->status();
            if (!status.ok()) return testing::AssertionFailure() << status.what();
            if (const auto right = compare(rank); !right) return right;
        }
        return testing::AssertionSuccess();
    }

    /// Connections may break: whoever ends well has the right result, whoever does not says which
    /// rank was lost, and nobody writes where the call is over.
    testing::AssertionResult runOverBreaks(int& failed) {
        if (!finish()) return testing::AssertionFailure() << "no end";
        for (Rank rank = 0; rank < job_.ranks(); ++rank) {
            const Status& status = works_[rank]->status();
            if (status.ok()) {
                if (const auto right = compare(rank); !right) return right;
                continue;
            }
            ++failed;
            if (status.code() != Status::Code::kPeerLost ||
                status.what().find("rank ") == std::string::npos) {
                return testing::AssertionFailure() << "rank " << rank << ": " << status.what();
            }
        }
        for (const Values& output : outputs_) std::fill(output.begin(), output.end(), kMine);
        job_.runFor([] { return false; }, std::chrono::milliseconds(5));
        for (const Values& output : outputs_) {
            const auto isMine = [](std::uint64_t value) { return value == kMine; };
            if (!std::all_of(output.begin(), output.end(), isMine)) {
                return testing::AssertionFailure() << "memory was written after the end";
            }
        }
        return testing::AssertionSuccess();
    }

private:
    static constexpr std::uint64_t kMine = 0x3C3C3C3C3C3C3C3C;

    bool finish() {
        const int segments = 1 + static_cast<int>(random_() % 3);
        const int window = 1 + static_cast<int>(random_() % 2);
        for (Rank rank = 0; rank < job_.ranks(); ++rank) {
            auto plans = job_.prepare(rank, call_.plans[rank], Mapping::kAll);
            plans->segments = plans->segmentsWhenMapped = segments;
            plans->window = window;
            works_.push_back(job_.startPrepared(rank, request(rank), std::move(plans)));
        }
        const auto areDone = [&] {
            return std::all_of(works_.begin(), works_.end(),
                               [](const auto& work) { return work->isDone(); });
        };
        return job_.runFor(areDone, std::chrono::seconds(20));
    }

    std::size_t blocks() const {
        return call_.collective == Collective::kAllGather ? call_.nodeOfRank.size() : 1;
    }
    Values allocate(Rank rank, std::size_t elements) {
        const auto made = job_.arena(rank).allocate(elements * sizeof(std::uint64_t));
        EXPECT_TRUE(made.ok()) << made.status().what();
        return {static_cast<std::uint64_t*>(*made), elements};
    }
    CallRequest request(Rank rank) const {
        CallRequest call;
        call.collective = call_.collective;
        call.type = DataType::kUint64;
        call.root = call_.plans[rank].root;
        call.input = reinterpret_cast<const std::byte*>(inputs_[rank].data());
        call.output = reinterpret_cast<std::byte*>(outputs_[rank].data());
        call.counts.uniform = elements_;
        return call;
    }
    std::uint64_t expected(std::size_t at) const {
        if (call_.collective == Collective::kAllGather) {
            return inputs_[at / elements_][at % elements_];
        }
        if (call_.collective == Collective::kBroadcast) return inputs_[call_.plans[0].root][at];
        std::uint64_t sum = 0;
        for (const Values& input : inputs_) sum += input[at];
        return sum;
    }
    testing::AssertionResult compare(Rank rank) const {
        for (std::size_t at = 0; at < outputs_[rank].size(); ++at) {
            if (outputs_[rank][at] == expected(at)) continue;
            return testing::AssertionFailure() << "rank " << rank << " element " << at;
        }
        return testing::AssertionSuccess();
    }

    EngineJob& job_;
    const RandomCall& call_;
    std::mt19937_64 random_;
    const std::size_t elements_;
    std::vector<Values> inputs_;
    std::vector<Values> outputs_;
    std::vector<std::shared_ptr<Work>> works_;
};

class RandomPlans : public testing::TestWithParam<std::string> {};

TEST_P(RandomPlans, ThatHoldGiveTheDefinedResult) {
    const std::size_t wanted = environmentVariable("TESTS_WHOLE").has_value() ? 10'000 : 200;
    std::map<std::vector<int>, std::unique_ptr<EngineJob>> jobs;  // by nodes of ranks
    constexpr std::size_t kMostJobs = 16;
    std::size_t held = 0;
    for (std::uint64_t seed = 0; held < wanted && seed < 3 * wanted; ++seed) {
        const RandomCall call = randomCall(seed, 0);
        if (call.plans.empty()) continue;
        if (!proveBothModels(call.collective, call.plans, call.nodeOfRank)) continue;
        // libfabric's ofi_rxm takes 95 MB of each rank.
        if (jobs.size() >= kMostJobs && !jobs.contains(call.nodeOfRank)) jobs.clear();
        auto& job = jobs[call.nodeOfRank];
        if (!job) job = std::make_unique<EngineJob>(call.nodeOfRank, GetParam());
        ASSERT_TRUE(RandomRun(*job, call, seed).run()) << "seed " << seed;
        ++held;
    }
    EXPECT_EQ(held, wanted);
}

INSTANTIATE_TEST_SUITE_P(Over, RandomPlans, testing::ValuesIn(deviceKinds()),
                         [](const auto& test) { return test.param; });

class BreakingPlans : public testing::TestWithParam<std::string> {};

TEST_P(BreakingPlans, EndByNameWithNothingWrong) {
    const int wanted = environmentVariable("TESTS_WHOLE").has_value() ? 1000 : 20;
    int failed = 0;
    int held = 0;
    for (std::uint64_t seed = 0; held < wanted && seed < 100U * static_cast<unsigned>(wanted);
         ++seed) {
        const RandomCall call = randomCall(seed, 0);
        if (call.plans.empty()) continue;
        if (!proveBothModels(call.collective, call.plans, call.nodeOfRank)) continue;
        const int dropAfter = 1 + static_cast<int>(seed * 7 % 23);
        EngineJob job(call.nodeOfRank, droppingKind(GetParam(), dropAfter));
        ASSERT_TRUE(RandomRun(job, call, seed).runOverBreaks(failed)) << "seed " << seed;
        ++held;
    }
    EXPECT_EQ(held, wanted);
    EXPECT_GT(failed, 0);
}

std::vector<std::string> plainKinds() {
    std::vector<std::string> kinds;
    for (const std::string& kind : enduringDeviceKinds()) {
        if (!kind.starts_with("strict_")) kinds.push_back(kind);
    }
    return kinds;
}

INSTANTIATE_TEST_SUITE_P(Over, BreakingPlans, testing::ValuesIn(plainKinds()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace isthmus::test
