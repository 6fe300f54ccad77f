// Many calls: in flight at once, with changing roots, on several communicators, and again with the
// same bits. And few large ones.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cmath>
#include <cstring>
#include <deque>
#include <random>
#include <thread>

#include "comm/reduce/reducer.hpp"
#include "tests/conformance/collective/data.hpp"
#include "tests/conformance/collective/layouts.hpp"
#include "tests/conformance/collective/trial.hpp"
#include "tests/support/local_job.hpp"

namespace isthmus::conformance {
namespace {

struct Place {
    std::string layout;
    LocalJob::Wires wires;
};

class Repetition : public testing::TestWithParam<Place> {
protected:
    LocalJob job{nodesOf(GetParam().layout), {{"ISTHMUS_SEGMENT", "8K"}}, GetParam().wires};
};

INSTANTIATE_TEST_SUITE_P(Over, Repetition,
                         testing::Values(Place{"S4", LocalJob::Wires::kReal},
                                         Place{"RR4", LocalJob::Wires::kInproc},
                                         Place{"RR4", LocalJob::Wires::kReal},
                                         Place{"U321", LocalJob::Wires::kInproc}),
                         [](const auto& test) {
                             const bool isReal = test.param.wires == LocalJob::Wires::kReal;
                             return test.param.layout + (isReal ? "SharedMemoryAndTcp" : "Inproc");
                         });

Trial randomTrial(std::mt19937& random, int ranks, std::uint64_t seed) {
    constexpr std::size_t kCounts[] = {0, 1, 2, 3, 64, 4096};
    const auto collective = Collective(random() % kCollectives);
    auto type = DataType(random() % kDataTypes);
    if (reduces(collective) && !isReducible(type, ReduceOp::kSum)) type = DataType::kUint8;
    const auto op = ReduceOp(random() % kReduceOps);
    const auto root = static_cast<Rank>(random() % static_cast<unsigned>(ranks));
    return {.collective = collective,
            .type = type,
            .op = isReducible(type, op) ? op : ReduceOp::kSum,
            .root = hasRoot(collective) ? root : 0,
            .count = kCounts[random() % 6],
            .isMapped = random() % 2 == 0,
            .isInPlace = random() % 2 == 0,
            .seed = seed};
}

// https://github.com/openucx/ucc/issues/541: no barrier between, up to eight in flight, one rank
// that dawdles.
TEST_P(Repetition, OfMixedCallsWithChangingRootsIsNeverConfused) {  // NUM-23
    job.run([&](Rank rank, Communicator& communicator) {
        std::mt19937 random(23);
        std::mt19937 pause(5);
        std::deque<std::unique_ptr<RunningTrial>> running;
        for (std::uint64_t call = 0; call < 2000; ++call) {
            Trial trial = randomTrial(random, job.ranks(), call);
            if (rank == 1 && call % 3 == 0) trial.isMapped = !trial.isMapped;  // unlike the others
            running.push_back(std::make_unique<RunningTrial>(trial, communicator));
            running.back()->start(false);
            if (rank == 1 && call % 16 == 0)
                std::this_thread::sleep_for(std::chrono::microseconds(pause() % 500));
            while (running.size() > call % 8) {
                ASSERT_TRUE(running.front()->finish());
                running.pop_front();
            }
        }
        while (!running.empty()) {
            ASSERT_TRUE(running.front()->finish());
            running.pop_front();
        }
    });
}

// Numbers of all sizes: their sum depends on the order of additions.
Buffer unevenFloats(Rank rank, std::size_t elements) {
    std::mt19937 random(static_cast<unsigned>(rank));
    std::uniform_real_distribution<float> exponent(-8, 8);
    Buffer buffer(elements * sizeof(float));
    for (std::size_t i = 0; i < elements; ++i) {
        const float number = std::exp(exponent(random)) * (random() % 2 == 0 ? 1.0f : -1.0f);
        std::memcpy(buffer.data() + i * sizeof(float), &number, sizeof number);
    }
    return buffer;
}

TEST_P(Repetition, GivesTheSameBitsWhileAnotherCommunicatorIsBusy) {
    job.run([&](Rank rank, Communicator& communicator) {
        auto other = communicator.split(0, -rank, {});
        ASSERT_TRUE(other.ok());
        std::thread busy([&] {
            for (std::uint64_t call = 0; call < 60; ++call)
                ASSERT_TRUE(
                    runTrial({.count = call % 2 == 0 ? 7u : 30000u, .seed = call}, **other));
        });
        for (const std::size_t elements : {5, 100, 20011}) {
            const Buffer mine = unevenFloats(rank, elements);
            Buffer first;
            for (int again = 0; again < 20; ++again) {
                Buffer output(mine.size());
                CallRequest request;
                request.type = DataType::kFloat32;
                request.collective = Collective::kAllReduce;
                request.input = mine.data();
                request.output = output.data();
                request.counts.uniform = elements;
                CallOptions options;
                options.isBlocking = true;
                EXPECT_TRUE(communicator.call(std::move(request), options)->status().ok());
                if (again == 0) first = output;
                EXPECT_EQ(output, first) << elements << " again " << again;
            }
        }
        busy.join();
    });
}

// https://github.com/pytorch/pytorch/issues/149200
TEST_P(Repetition, OfSplitsServesEveryRootOfGroupsInAnyOrder) {  // NUM-29
    const std::vector<std::vector<Rank>> groups = {{2, 3}, {3, 1}, {1, 3, 0}, {3, 2, 1, 0}};
    job.run([&](Rank rank, Communicator& communicator) {
        for (const auto& members : groups) {
            const auto at = std::find(members.begin(), members.end(), rank);
            const int position = static_cast<int>(at - members.begin());
            auto part = communicator.split(at == members.end() ? -1 : 0, position, {});
            ASSERT_TRUE(part.ok()) << part.status().what();
            ASSERT_EQ(*part == nullptr, at == members.end());
            if (*part == nullptr) continue;
            ASSERT_EQ((*part)->rank(), position);
            ASSERT_EQ((*part)->ranks(), static_cast<int>(members.size()));
            for (int collective = 0; collective < kCollectives; ++collective) {
                const int roots = hasRoot(Collective(collective)) ? (*part)->ranks() : 1;
                for (Rank root = 0; root < roots; ++root) {
                    ASSERT_TRUE(runTrial({.collective = Collective(collective),
                                          .root = root,
                                          .count = 301,
                                          .seed = static_cast<std::uint64_t>(root)},
                                         **part));
                }
            }
        }
    });
}

}  // namespace
}  // namespace isthmus::conformance
