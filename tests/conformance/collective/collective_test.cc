// Every collective over one node, 2x2, round robin and 3+2+1, in mapped and in ordinary memory, in
// place and not.
#include <gtest/gtest.h>

#include "tests/conformance/collective/layouts.hpp"
#include "tests/conformance/collective/trial.hpp"
#include "tests/support/local_job.hpp"

namespace isthmus::conformance {
namespace {

class EveryLayout : public testing::TestWithParam<std::size_t> {
protected:
    const std::vector<int>& nodeOfRank() const { return kLayouts[GetParam()].nodeOfRank; }
};

TEST_P(EveryLayout, GivesTheDefinedResultOfEveryCollective) {
    LocalJob job(nodeOfRank(), {{"ISTHMUS_SEGMENT", "64K"}});
    job.run([&](Rank, Communicator& communicator) {
        for (int collective = 0; collective < kCollectives; ++collective) {
            for (const std::size_t count : {0, 1, 2, 17, 1021, 40009}) {
                for (const bool isMapped : {false, true}) {
                    for (const bool isInPlace : {false, true}) {
                        ASSERT_TRUE(runTrial({.collective = Collective(collective),
                                              .count = count,
                                              .isMapped = isMapped,
                                              .isInPlace = isInPlace},
                                             communicator));
                    }
                }
            }
        }
    });
}

TEST_P(EveryLayout, ServesEveryRoot) {
    LocalJob job(nodeOfRank());
    job.run([&](Rank, Communicator& communicator) {
        for (int collective = 0; collective < kCollectives; ++collective) {
            if (!hasRoot(Collective(collective))) continue;
            for (Rank root = 0; root < job.ranks(); ++root) {
                for (const std::size_t count : {1, 4099}) {
                    ASSERT_TRUE(runTrial({.collective = Collective(collective),
                                          .root = root,
                                          .count = count,
                                          .isMapped = root % 2 == 0},
                                         communicator));
                }
            }
        }
    });
}

TEST_P(EveryLayout, RunsEveryAlgorithmThatFits) {
    LocalJob job(nodeOfRank(), {{"ISTHMUS_SEGMENT", "16K"}});
    job.run([&](Rank, Communicator& communicator) {
        for (const Algorithm& entry : catalogue()) {
            if (!entry.fits(communicator.layout())) continue;
            for (const std::size_t count : {1, 63, 5003}) {
                if (entry.name == "inline" && count > 200) continue;
                for (const bool isMapped : {false, true}) {
                    ASSERT_TRUE(runTrial({.collective = entry.collective,
                                          .root = job.ranks() - 1,
                                          .count = count,
                                          .isMapped = isMapped,
                                          .algorithm = std::string(entry.name)},
                                         communicator));
                }
            }
        }
    });
}

INSTANTIATE_TEST_SUITE_P(Layouts, EveryLayout, testing::Range(std::size_t{0}, kLayouts.size()),
                         [](const auto& test) { return kLayouts[test.param].name; });

}  // namespace
}  // namespace isthmus::conformance
