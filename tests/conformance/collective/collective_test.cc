// Every collective over one node, 2x2, round robin and 3+2+1, in mapped and in ordinary memory, in
// place and not.
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <tuple>

#include "tests/conformance/collective/data.hpp"
#include "tests/support/local_job.hpp"

namespace isthmus {
namespace {

using conformance::GuardedBuffer;
using conformance::valueOf;

const std::vector<std::pair<std::string, std::vector<int>>> kLayouts = {
    {"W1", {0}},
    {"S2", {0, 0}},
    {"S4", {0, 0, 0, 0}},
    {"N2x1", {0, 1}},
    {"N2x2", {0, 0, 1, 1}},
    {"RR4", {0, 1, 0, 1}},
    {"U13", {0, 1, 1, 1}},
    {"U321", {0, 0, 0, 1, 1, 2}},
};

// Blocks of input and output that a rank has.
int inputBlocks(Collective collective, bool isRoot, int ranks) {
    switch (collective) {
    case Collective::kReduceScatter:
    case Collective::kAllToAll:
        return ranks;
    case Collective::kScatter:
        return isRoot ? ranks : 0;
    case Collective::kBroadcast:
        return isRoot ? 1 : 0;
    case Collective::kBarrier:
        return 0;
    default:
        return 1;
    }
}

int outputBlocks(Collective collective, bool isRoot, int ranks) {
    switch (collective) {
    case Collective::kAllGather:
    case Collective::kAllToAll:
        return ranks;
    case Collective::kGather:
        return isRoot ? ranks : 0;
    case Collective::kReduce:
        return isRoot ? 1 : 0;
    case Collective::kBarrier:
        return 0;
    default:
        return 1;
    }
}

std::int64_t sumOf(int ranks, std::size_t index) {
    std::int64_t sum = 0;
    for (int rank = 0; rank < ranks; ++rank) sum += valueOf(rank, index);
    return sum;
}

// What `rank` must hold at `index` of its output, from the definition of the collective.
std::int64_t expected(Collective collective, int rank, int ranks, int root, std::size_t count,
                      std::size_t index) {
    const std::size_t block = count == 0 ? 0 : index / count;
    const std::size_t within = count == 0 ? 0 : index % count;
    const auto mine = static_cast<std::size_t>(rank);
    switch (collective) {
    case Collective::kAllReduce:
    case Collective::kReduce:
        return sumOf(ranks, index);
    case Collective::kBroadcast:
        return valueOf(root, index);
    case Collective::kAllGather:
    case Collective::kGather:
        return valueOf(static_cast<int>(block), within);
    case Collective::kReduceScatter:
        return sumOf(ranks, mine * count + index);
    case Collective::kScatter:
        return valueOf(root, mine * count + index);
    case Collective::kAllToAll:
        return valueOf(static_cast<int>(block), mine * count + within);
    case Collective::kBarrier:
        return 0;
    }
    return -1;
}

struct Case {
    Collective collective;
    std::size_t count;
    int root = 0;
    bool isMapped = false;
    bool isInPlace = false;
    std::string algorithm;
};

std::string describe(const Case& c) {
    return std::string(nameOf(c.collective)) + " count " + std::to_string(c.count) + " root " +
           std::to_string(c.root) + (c.isMapped ? " mapped" : " ordinary") +
           (c.isInPlace ? " in place" : "") + " " + c.algorithm;
}

void runCase(const Case& c, Rank rank, Communicator& communicator) {
    const int ranks = communicator.ranks();
    const bool isRoot = rank == c.root || !hasRoot(c.collective);
    const std::size_t inputCount = c.count * inputBlocks(c.collective, isRoot, ranks);
    const std::size_t outputCount = c.count * outputBlocks(c.collective, isRoot, ranks);
    Arena& arena = communicator.runtime().arena();
    std::vector<void*> blocks;
    const auto buffer = [&](std::size_t bytes) {
        if (!c.isMapped) return GuardedBuffer(bytes, std::byte{0x5A});
        const auto memory = arena.allocate(bytes + 2 * GuardedBuffer::kGuard);
        EXPECT_TRUE(memory.ok());
        blocks.push_back(*memory);
        return GuardedBuffer(static_cast<std::byte*>(*memory), bytes, std::byte{0x5A});
    };
    const bool sharesMemory = c.isInPlace && inputCount > 0 && outputCount > 0;
    GuardedBuffer input =
        buffer((sharesMemory ? std::max(inputCount, outputCount) : inputCount) * sizeof(float));
    GuardedBuffer output = buffer(outputCount * sizeof(float));
    auto* from = reinterpret_cast<float*>(input.data());
    auto* to = reinterpret_cast<float*>(output.data());
    if (sharesMemory) {
        to = from;
        if (inputCount < outputCount) from += static_cast<std::size_t>(rank) * c.count;
        if (outputCount < inputCount) to += static_cast<std::size_t>(rank) * c.count;
    }
    for (std::size_t i = 0; i < inputCount; ++i) from[i] = static_cast<float>(valueOf(rank, i));

    CallRequest request;
    request.collective = c.collective;
    request.type = DataType::kFloat32;
    request.root = c.root;
    request.input = reinterpret_cast<const std::byte*>(from);
    request.output = reinterpret_cast<std::byte*>(to);
    request.counts.uniform = c.count;
    CallOptions options;
    options.isBlocking = true;
    options.algorithm = c.algorithm;
    const auto work = communicator.call(std::move(request), options);
    ASSERT_TRUE(work->isDone()) << describe(c);
    ASSERT_TRUE(work->status().ok())
        << describe(c) << " at " << rank << ": " << work->status().what();
    for (std::size_t i = 0; i < outputCount; ++i) {
        const auto want =
            static_cast<float>(expected(c.collective, rank, ranks, c.root, c.count, i));
        ASSERT_EQ(to[i], want) << describe(c) << " at rank " << rank << " of " << ranks << " index "
                               << i;
    }
    if (!sharesMemory) {
        for (std::size_t i = 0; i < inputCount; ++i)
            ASSERT_EQ(from[i], static_cast<float>(valueOf(rank, i)));
    }
    EXPECT_TRUE(input.isIntact()) << describe(c);
    EXPECT_TRUE(output.isIntact()) << describe(c);
    for (void* block : blocks) arena.free(block);
}

class EveryLayout : public testing::TestWithParam<std::size_t> {
protected:
    const std::vector<int>& nodeOfRank() const { return kLayouts[GetParam()].second; }
};

TEST_P(EveryLayout, GivesTheDefinedResultOfEveryCollective) {
    LocalJob job(nodeOfRank(), {{"ISTHMUS_SEGMENT", "64K"}});
    job.run([&](Rank rank, Communicator& communicator) {
        for (int collective = 0; collective < kCollectives; ++collective) {
            for (const std::size_t count : {0, 1, 2, 17, 1021, 40009}) {
                for (const bool isMapped : {false, true}) {
                    for (const bool isInPlace : {false, true}) {
                        Case c{
                            static_cast<Collective>(collective), count, 0, isMapped, isInPlace, ""};
                        runCase(c, rank, communicator);
                        if (testing::Test::HasFatalFailure()) return;
                    }
                }
            }
        }
    });
}

TEST_P(EveryLayout, ServesEveryRoot) {
    LocalJob job(nodeOfRank());
    job.run([&](Rank rank, Communicator& communicator) {
        for (int collective = 0; collective < kCollectives; ++collective) {
            if (!hasRoot(static_cast<Collective>(collective))) continue;
            for (Rank root = 0; root < job.ranks(); ++root) {
                for (const std::size_t count : {1, 4099}) {
                    runCase({static_cast<Collective>(collective), count, root, root % 2 == 0, false,
                             ""},
                            rank, communicator);
                    if (testing::Test::HasFatalFailure()) return;
                }
            }
        }
    });
}

TEST_P(EveryLayout, RunsEveryAlgorithmThatFits) {
    LocalJob job(nodeOfRank(), {{"ISTHMUS_SEGMENT", "16K"}});
    job.run([&](Rank rank, Communicator& communicator) {
        for (const Algorithm& entry : catalogue()) {
            if (!entry.fits(communicator.layout())) continue;
            for (const std::size_t count : {1, 63, 5003}) {
                if (entry.name == "inline" && count > 200) continue;
                for (const bool isMapped : {false, true}) {
                    const Rank root = job.ranks() - 1;
                    runCase(
                        {entry.collective, count, root, isMapped, false, std::string(entry.name)},
                        rank, communicator);
                    if (testing::Test::HasFatalFailure()) return;
                }
            }
        }
    });
}

INSTANTIATE_TEST_SUITE_P(Layouts, EveryLayout, testing::Range(std::size_t{0}, kLayouts.size()),
                         [](const auto& test) { return kLayouts[test.param].first; });

}  // namespace
}  // namespace isthmus
