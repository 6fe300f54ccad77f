// Types x operators x collectives x sizes x memory x place x root over every layout: all
// combinations of any three of them over function calls, of any two over shared memory and TCP.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "comm/reduce/reducer.hpp"
#include "tests/conformance/collective/layouts.hpp"
#include "tests/conformance/collective/matrix.hpp"
#include "tests/support/local_job.hpp"

namespace isthmus::conformance {
namespace {

TEST(CoveringRows, HoldEveryPairThatCanOccur) {
    std::set<std::pair<DataType, ReduceOp>> reduced;
    std::set<std::pair<Collective, Size>> sized;
    std::set<std::pair<Collective, DataType>> typed;
    std::set<std::tuple<Collective, bool, bool>> rooted;
    for (const Row& row : coveringRows(2)) {
        if (reduces(row.collective)) reduced.emplace(row.type, row.op);
        sized.emplace(row.collective, row.size);
        typed.emplace(row.collective, row.type);
        if (hasRoot(row.collective)) {
            rooted.emplace(row.collective, true, row.isLastRoot);
            rooted.emplace(row.collective, false, row.isInPlace);
        }
    }
    // 8 integer types and bool x 7 operators, 4 floating types x 5, 2 complex ones x 2.
    EXPECT_EQ(reduced.size(), 87u);
    EXPECT_EQ(sized.size(), 8u * kSizes);
    // Three collectives reduce, which two types do not know.
    EXPECT_EQ(typed.size(), 8u * kDataTypes - 3 * 2);
    EXPECT_EQ(rooted.size(), 4u * 2 * 2);
}

struct Place {
    std::string layout;
    LocalJob::Wires wires;
};

class Matrix : public testing::TestWithParam<Place> {};

TEST_P(Matrix, GivesTheDefinedResultInEveryCell) {
    const bool isReal = GetParam().wires == LocalJob::Wires::kReal;
    const std::vector<int>& nodes = nodesOf(GetParam().layout);
    // Inside one node a segment is a quarter of the knob (select.cc).
    const bool isOneNode = *std::max_element(nodes.begin(), nodes.end()) == 0;
    constexpr std::size_t kSegment = 8192;
    const std::vector<Row> rows = coveringRows(isReal ? 2 : 3);
    LocalJob job(nodes, {{"ISTHMUS_SEGMENT", isOneNode ? "32K" : "8K"}}, GetParam().wires);
    std::vector<std::vector<std::uint64_t>> agreed(static_cast<std::size_t>(job.ranks()));
    job.run([&](Rank rank, Communicator& communicator) {
        std::vector<int> found;
        for (Rank other = 0; other < job.ranks(); ++other)
            found.push_back(communicator.layout().nodeOf(other));
        ASSERT_EQ(found, nodes);
        std::uint64_t seed = 0;
        for (const Row& row : rows) {
            RunningTrial trial(trialOf(row, job.ranks(), kSegment, ++seed), communicator);
            trial.start(true);
            ASSERT_TRUE(trial.finish());
            if (row.collective == Collective::kAllReduce) agreed[rank].push_back(trial.digest());
        }
    });
    // Where a result is rounded, all ranks have rounded alike.
    EXPECT_GT(agreed.front().size(), 20u);
    for (const auto& digests : agreed) EXPECT_EQ(digests, agreed.front());
}

std::vector<Place> places() {
    std::vector<Place> places;
    for (const std::string layout : {"W1", "S4", "N2x2", "U321", "RR4", "U13"}) {
        places.push_back({layout, LocalJob::Wires::kInproc});
        if (layout != "W1") places.push_back({layout, LocalJob::Wires::kReal});
    }
    return places;
}

INSTANTIATE_TEST_SUITE_P(Over, Matrix, testing::ValuesIn(places()), [](const auto& test) {
    return test.param.layout +
           (test.param.wires == LocalJob::Wires::kReal ? "SharedMemoryAndTcp" : "Inproc");
});

}  // namespace
}  // namespace isthmus::conformance
