// Types x operators x collectives x forms x sizes x memory x place x root over every layout: all
// combinations of any three of them over function calls, of any two over shared memory, over TCP,
// and over both.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/conformance/collective/layouts.hpp"
#include "tests/conformance/collective/matrix.hpp"
#include "tests/support/local_job.hpp"
#include "tests/support/rma/device_kinds.hpp"

namespace isthmus::conformance {
namespace {

TEST(CoveringRows, HoldEveryPairThatCanOccur) {
    std::set<std::pair<DataType, int>> reduced;
    std::set<std::pair<Collective, Size>> sized;
    std::set<std::pair<Collective, DataType>> typed;
    std::set<std::pair<Collective, Form>> formed;
    std::set<std::tuple<Collective, bool, bool>> rooted;
    for (const Row& row : coveringRows(2)) {
        if (reduces(row.collective)) reduced.emplace(row.type, row.op);
        sized.emplace(row.collective, row.size);
        typed.emplace(row.collective, row.type);
        formed.emplace(row.collective, row.form);
        if (hasRoot(row.collective)) {
            rooted.emplace(row.collective, true, row.isLastRoot);
            rooted.emplace(row.collective, false, row.isInPlace);
        }
    }
    // 8 integer types and bool x 7 operators, 4 floating types x 5, 2 complex ones x 2; a factor
    // for the 4 floating types, two functions for each type.
    EXPECT_EQ(reduced.size(), 87u + 4 + 2 * kDataTypes);
    EXPECT_EQ(sized.size(), 8u * kSizes);
    EXPECT_EQ(typed.size(), 8u * kDataTypes);
    // 8 x plain, together, prepared; unequal for the 5 that have blocks; 5 coalesced ones; 2
    // options of the 3 that reduce.
    EXPECT_EQ(formed.size(), 8u * 3 + 5 + 5 + 3 * 2);
    EXPECT_EQ(rooted.size(), 4u * 2 * 2);
}

struct Place {
    std::string layout;
    LocalJob::Wires wires;
    std::string device = {};
    bool isRead = false;  ///< ordinary buffers, through the system
};

class Matrix : public testing::TestWithParam<Place> {};

TEST_P(Matrix, GivesTheDefinedResultInEveryCell) {
    const bool isInproc = GetParam().wires == LocalJob::Wires::kInproc;
    const std::vector<int>& nodes = nodesOf(GetParam().layout);
    // Inside one node a segment is a quarter of the knob (select.cc).
    const bool isOneNode = GetParam().wires != LocalJob::Wires::kTcp &&
                           GetParam().wires != LocalJob::Wires::kCards &&
                           *std::max_element(nodes.begin(), nodes.end()) == 0;
    constexpr std::size_t kSegment = 8192;
    static const std::vector<Row> kPairs = coveringRows(2);
    static const std::vector<Row> kTriples = coveringRows(3);
    const std::vector<Row>& rows = isInproc ? kTriples : kPairs;
    LocalJob job(nodes,
                 {{"ISTHMUS_SEGMENT", isOneNode ? "32K" : "8K"},
                  {"ISTHMUS_READ_PEERS", GetParam().isRead ? "always" : "auto"}},
                 GetParam().wires, GetParam().device);
    std::vector<std::vector<std::uint64_t>> agreed(static_cast<std::size_t>(job.ranks()));
    job.run([&](Rank rank, Communicator& communicator) {
        std::vector<int> found;
        for (Rank other = 0; other < job.ranks(); ++other)
            found.push_back(communicator.layout().nodeOf(other));
        ASSERT_EQ(found, job.nodeOfRank());
        std::uint64_t seed = 0;
        for (const Row& row : rows) {
            ASSERT_TRUE(runRow(row, kSegment, ++seed, communicator, agreed[rank]));
        }
    });
    // Where a result is rounded, all ranks have rounded alike.
    EXPECT_GT(agreed.front().size(), 20u);
    for (const auto& digests : agreed) EXPECT_EQ(digests, agreed.front());
}

std::vector<Place> places() {
    using Wires = LocalJob::Wires;
    std::vector<Place> places;
    for (const std::string layout : {"W1", "S4", "N2x2", "U321", "RR4", "U13"}) {
        for (const Wires wires : {Wires::kInproc, Wires::kShm, Wires::kTcp, Wires::kReal})
            places.push_back({layout, wires});
    }
    for (const std::string layout : {"S4", "N2x2", "U13"}) {
        for (const std::string& device : deviceKinds())
            places.push_back({layout, Wires::kCards, device});
    }
    for (const std::string layout : {"S2", "S4"}) {
        for (const Wires wires : {Wires::kInproc, Wires::kShm})
            places.push_back({layout, wires, "", true});
    }
    return places;
}

std::string nameOf(const testing::TestParamInfo<Place>& test) {
    constexpr const char* kNames[] = {"Inproc", "SharedMemoryAndTcp", "SharedMemory", "Tcp", ""};
    return test.param.layout + kNames[static_cast<int>(test.param.wires)] + test.param.device +
           (test.param.isRead ? "Read" : "");
}

INSTANTIATE_TEST_SUITE_P(Over, Matrix, testing::ValuesIn(places()), nameOf);

}  // namespace
}  // namespace isthmus::conformance
