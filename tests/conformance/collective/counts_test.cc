// Blocks of unequal size: counts with zeros, a rank with nothing, sizes three orders of magnitude
// apart, gaps between the blocks; each must come out right with everything around it untouched.
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "tests/conformance/collective/layouts.hpp"
#include "tests/conformance/collective/trial.hpp"
#include "tests/support/local_job.hpp"

namespace isthmus::conformance {
namespace {

using Counts = std::vector<std::size_t>;

constexpr Collective kWithCounts[] = {Collective::kAllGather, Collective::kReduceScatter,
                                      Collective::kGather, Collective::kScatter};

constexpr std::string_view kAlone[] = {"direct", "pairwise", "pairwise_copied",
                                       "two_level_pairwise", "two_level_pairwise_copied"};

std::vector<Counts> countsFor(int ranks) {
    const auto of = [&](const auto& count) {
        Counts counts;
        for (int rank = 0; rank < ranks; ++rank) counts.push_back(count(rank));
        return counts;
    };
    return {
        of([](int rank) -> std::size_t { return 3 * rank + 1; }),
        of([](int rank) -> std::size_t { return rank % 2 == 0 ? 0 : 5 + rank; }),
        of([](int rank) -> std::size_t { return rank == 0       ? 20011
                                                : rank % 2 == 0 ? 1
                                                                : 17; }),
        of([&](int rank) -> std::size_t { return rank == ranks - 1 ? 9001 : 0; }),
        of([](int) -> std::size_t { return 0; }),
    };
}

// [from][to]; rank 1 sends nothing, the last rank receives nothing.
std::vector<Counts> exchangeFor(int ranks, std::size_t unit) {
    std::vector<Counts> exchange;
    for (int from = 0; from < ranks; ++from) {
        Counts row;
        for (int to = 0; to < ranks; ++to) {
            const bool isNothing = from == 1 || to == ranks - 1 || (from + to) % 5 == 4;
            const std::size_t count = (from + 2 * to) % 3 == 0 ? unit : from * 7u + to + 1;
            row.push_back(isNothing ? 0 : count);
        }
        exchange.push_back(row);
    }
    return exchange;
}

struct Place {
    std::string layout;
    LocalJob::Wires wires;
};

class UnequalBlocks : public testing::TestWithParam<Place> {
protected:
    LocalJob job{nodesOf(GetParam().layout), {{"ISTHMUS_SEGMENT", "16K"}}, GetParam().wires};
};

TEST_P(UnequalBlocks, ComeOutRightWithEveryRootMemoryAndPlace) {  // NUM-06
    job.run([&](Rank, Communicator& communicator) {
        std::uint64_t seed = 0;
        for (const Counts& counts : countsFor(job.ranks())) {
            for (const Collective collective : kWithCounts) {
                for (int way = 0; way < 4; ++way) {
                    const Rank root = static_cast<Rank>(++seed % job.ranks());
                    ASSERT_TRUE(runTrial({.collective = collective,
                                          .type = way < 2 ? DataType::kInt64 : DataType::kFloat16,
                                          .root = hasRoot(collective) ? root : 0,
                                          .each = counts,
                                          .isMapped = way % 2 == 0,
                                          .isInPlace = way / 2 == 0,
                                          .seed = seed},
                                         communicator));
                }
            }
        }
    });
}

TEST_P(UnequalBlocks, OfAnAllGatherMayHaveGaps) {
    job.run([&](Rank, Communicator& communicator) {
        std::uint64_t seed = 0;
        for (const Counts& counts : countsFor(job.ranks())) {
            for (const std::size_t gap : {1, 3, 1000}) {
                for (int way = 0; way < 4; ++way) {
                    ASSERT_TRUE(runTrial({.collective = Collective::kAllGather,
                                          .type = gap == 3 ? DataType::kInt8 : DataType::kFloat64,
                                          .each = counts,
                                          .gap = gap,
                                          .isMapped = way % 2 == 0,
                                          .isInPlace = way / 2 == 0,
                                          .seed = ++seed},
                                         communicator));
                }
            }
        }
    });
}

TEST_P(UnequalBlocks, OfTheRootMayHaveGaps) {
    job.run([&](Rank, Communicator& communicator) {
        std::uint64_t seed = 0;
        for (const Counts& counts : countsFor(job.ranks())) {
            for (const Collective collective : {Collective::kGather, Collective::kScatter}) {
                for (int way = 0; way < 8; ++way) {
                    ASSERT_TRUE(
                        runTrial({.collective = collective,
                                  .type = way < 4 ? DataType::kFloat8e5m2 : DataType::kComplex128,
                                  .root = static_cast<Rank>(++seed % job.ranks()),
                                  .each = counts,
                                  .gap = way < 4 ? 3u : 100u,
                                  .isMapped = way % 2 == 0,
                                  .isInPlace = way / 2 % 2 == 0,
                                  .seed = seed},
                                 communicator));
                }
            }
        }
    });
}

TEST_P(UnequalBlocks, OfAnAllToAllMayHaveGaps) {
    job.run([&](Rank, Communicator& communicator) {
        std::uint64_t seed = 0;
        for (const std::size_t unit : {1, 40, 20011}) {
            for (const std::size_t gap : {0, 1, 77}) {
                for (const bool isMapped : {false, true}) {
                    ASSERT_TRUE(runTrial({.collective = Collective::kAllToAll,
                                          .type = gap == 1 ? DataType::kUint16 : DataType::kFloat32,
                                          .exchange = exchangeFor(job.ranks(), unit),
                                          .gap = gap,
                                          .isMapped = isMapped,
                                          .seed = ++seed},
                                         communicator));
                }
            }
        }
    });
}

TEST_P(UnequalBlocks, OfAnAllToAllMayBeInPlace) {
    job.run([&](Rank, Communicator& communicator) {
        std::vector<Counts> exchange;
        for (int from = 0; from < job.ranks(); ++from) {
            Counts row;
            for (int to = 0; to < job.ranks(); ++to)
                row.push_back(from == to ? 0 : from * to % 4 == 2 ? 5003 : from + to);
            exchange.push_back(row);
        }
        std::uint64_t seed = 0;
        for (const std::size_t gap : {0, 5}) {
            for (const bool isMapped : {false, true}) {
                ASSERT_TRUE(runTrial({.collective = Collective::kAllToAll,
                                      .type = DataType::kInt32,
                                      .exchange = exchange,
                                      .gap = gap,
                                      .isMapped = isMapped,
                                      .isInPlace = true,
                                      .seed = ++seed},
                                     communicator));
            }
        }
    });
}

TEST_P(UnequalBlocks, GoThroughEveryAlgorithmThatFits) {
    job.run([&](Rank, Communicator& communicator) {
        std::uint64_t seed = 0;
        for (const Algorithm& entry : catalogue()) {
            const bool hasCounts = std::find(std::begin(kWithCounts), std::end(kWithCounts),
                                             entry.collective) != std::end(kWithCounts);
            if (!entry.fits(communicator.layout()) || !hasCounts) continue;
            for (const Counts& counts : countsFor(job.ranks())) {
                if (entry.name == "inline" && *std::max_element(counts.begin(), counts.end()) > 100)
                    continue;
                ++seed;
                ASSERT_TRUE(runTrial({.collective = entry.collective,
                                      .root = hasRoot(entry.collective) ? job.ranks() - 1 : 0,
                                      .each = counts,
                                      .isMapped = seed % 2 == 0,
                                      .algorithm = std::string(entry.name),
                                      .seed = seed},
                                     communicator));
            }
        }
    });
}

// Its ranks do not know the sizes of blocks between others: what would need that is refused.
TEST_P(UnequalBlocks, OfAnAllToAllTravelAlone) {
    job.run([&](Rank, Communicator& communicator) {
        int served = 0;
        for (const Algorithm& entry : catalogue()) {
            if (entry.collective != Collective::kAllToAll || !entry.fits(communicator.layout()))
                continue;
            RunningTrial trial({.collective = Collective::kAllToAll,
                                .exchange = exchangeFor(job.ranks(), 3001),
                                .isMapped = served % 2 == 0,
                                .algorithm = std::string(entry.name)},
                               communicator);
            trial.start(true);
            if (std::count(std::begin(kAlone), std::end(kAlone), entry.name) > 0) {
                ASSERT_TRUE(trial.finish());
                ++served;
            } else {
                const testing::AssertionResult refused = trial.finish();
                ASSERT_FALSE(refused) << entry.name;
                ASSERT_NE(std::string_view(refused.message()).find("blocks of different sizes"),
                          std::string_view::npos)
                    << refused.message();
            }
        }
        EXPECT_EQ(served, communicator.layout().nodes.size() == 1 ? 3 : 4);
    });
}

std::vector<Place> places() {
    std::vector<Place> places;
    for (const std::string layout : {"S4", "N2x2", "U321", "RR4", "U13"}) {
        places.push_back({layout, LocalJob::Wires::kInproc});
        places.push_back({layout, LocalJob::Wires::kReal});
    }
    return places;
}

INSTANTIATE_TEST_SUITE_P(Over, UnequalBlocks, testing::ValuesIn(places()), [](const auto& test) {
    return test.param.layout +
           (test.param.wires == LocalJob::Wires::kReal ? "SharedMemoryAndTcp" : "Inproc");
});

}  // namespace
}  // namespace isthmus::conformance
