// The study of many ranks at few: 32 ranks in nodes of four, and alone, on every topology.
#include "benchmarks/scale/study.hpp"

#include <gtest/gtest.h>

#include "benchmarks/scale/report.hpp"

namespace isthmus::scale {
namespace {

constexpr std::uint64_t kBytes = 1 << 20;
constexpr std::uint64_t kManyBytes = 64 << 20;

std::vector<Row> rowsOf(Collective collective, int ranksOfNode, const std::string& topology) {
    Question question;
    question.ranks = {32};
    question.ranksOfNodes = {ranksOfNode};
    question.topologies = {topology};
    question.collectives = {collective};
    question.sizes = {8, kBytes, kManyBytes};
    question.machines.rackNodes = 2;
    question.machines.rackRanks = 8;
    std::vector<Row> rows;
    const Status status = study(
        question, [&](const Row& row) { rows.push_back(row); }, [](const std::string&) {});
    EXPECT_TRUE(status.ok()) << status.what();
    return rows;
}

const Row* find(const std::vector<Row>& rows, const std::string& algorithm, std::uint64_t bytes) {
    for (const Row& row : rows) {
        if (row.algorithm == algorithm && row.bytes == bytes) return &row;
    }
    return nullptr;
}

// Eight nodes: 2 * 7 / 8 of a megabyte over each card, a quarter of it where ranks have cards.
TEST(Scale, CountsTheBytesOfCards) {
    for (const auto& [topology, cards] : {std::pair("fat_tree", 1), {"rails", 4}}) {
        const std::vector<Row> rows = rowsOf(Collective::kAllReduce, 4, topology);
        const Row* const row = find(rows, "two_level_exchange", kBytes);
        ASSERT_NE(row, nullptr);
        EXPECT_NEAR(row->bytesPerCard, 1835008.0 / cards, 1) << topology;
        EXPECT_NEAR(row->boundBytesPerCard, 1835008.0 / cards, 1) << topology;
    }
}

// 7 rounds of 10 us each way, 2 us for each of 14 messages, 8 bytes over 11.956 GB/s.
TEST(Scale, PutsOnePassBesideItsForm) {
    const std::vector<Row> rows = rowsOf(Collective::kAllReduce, 4, "rails");
    const Row* const row = find(rows, "two_level_ring", 8);
    ASSERT_NE(row, nullptr);
    ASSERT_TRUE(row->form.has_value());
    EXPECT_NEAR(row->form->most, 14 * 12e-6, 1e-8);
    EXPECT_NEAR(row->form->least, 14 * 11e-6, 1e-8);
    EXPECT_GE(row->onePassSeconds, row->form->least);
}

TEST(Scale, GrowsAsTheFormsSay) {
    int compared = 0;
    for (const Collective collective :
         {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter,
          Collective::kAllToAll, Collective::kBroadcast}) {
        for (const auto& [topology, ranksOfNode] :
             {std::pair("fat_tree", 4), {"fat_tree", 1}, {"rails", 4}}) {
            const std::vector<Row> rows = rowsOf(collective, ranksOfNode, topology);
            EXPECT_EQ(summary(departures(rows, 0.1), 0.1).find("DEPARTS"), std::string::npos)
                << summary(departures(rows, 0.1), 0.1);
            for (const Row& row : rows) compared += row.onePassSeconds > 0 ? 1 : 0;
        }
    }
    EXPECT_GE(compared, 100);
}

// Three of four messages of a pairwise exchange change rails; node first none does.
TEST(Scale, NarrowLinksTakeTheirTime) {
    const std::vector<Row> wide = rowsOf(Collective::kAllToAll, 4, "rails");
    const std::vector<Row> narrow = rowsOf(Collective::kAllToAll, 4, "rails_narrow");
    const auto slower = [&](const char* algorithm) {
        const Row* const one = find(narrow, algorithm, kManyBytes);
        const Row* const other = find(wide, algorithm, kManyBytes);
        return one == nullptr || other == nullptr ? -1 : one->seconds / other->seconds;
    };
    EXPECT_GE(slower("two_level_pairwise"), 2);
    EXPECT_DOUBLE_EQ(slower("two_level_node_first"), 1);
}

TEST(Scale, TellsWhatDeparts) {
    Row row;
    row.form = FormSeconds{1, 2, 3};
    row.departure = 0.25;
    row.onePassSeconds = 2.5;
    EXPECT_EQ(departures({row}, 0.1).size(), 1U);
    EXPECT_TRUE(departures({row}, 0.3).empty());
    EXPECT_NE(summary({row}, 0.1).find("DEPARTS by +25.0 %"), std::string::npos);
}

}  // namespace
}  // namespace isthmus::scale
