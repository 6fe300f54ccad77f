// Nodes whose racks are known.
#include "comm/communicator/racks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/support/local_job.hpp"
#include "tests/unit/communicator/calls.hpp"

namespace isthmus::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Layout::racks of nodes of one rank that say so.
std::vector<std::vector<int>> racksFor(const std::vector<RackWord>& words) {
    std::vector<int> nodes;
    for (std::size_t rank = 0; rank < words.size(); ++rank) nodes.push_back(static_cast<int>(rank));
    const auto racks = racksOf(Layout::of(nodes), words);
    EXPECT_TRUE(racks.ok()) << racks.status().what();
    return racks.ok() ? *racks : std::vector<std::vector<int>>{};
}

TEST(Racks, AreNumberedFromTheirNames) {
    EXPECT_THAT(racksFor({{"a"}, {"b"}, {"a"}}), ElementsAre(ElementsAre(0, 1, 0)));
    EXPECT_THAT(racksFor({{"x/a"}, {"x/a"}, {"y/a"}, {"y/a"}, {"y/b"}}),
                ElementsAre(ElementsAre(0, 0, 1, 1, 2), ElementsAre(0, 0, 1, 1, 1)));
    // A row of one rack each tells nothing more.
    EXPECT_THAT(racksFor({{"x/a"}, {"x/a"}, {"y/b"}}), ElementsAre(ElementsAre(0, 0, 1)));
}

TEST(Racks, AreNoneWhereTheyAreNotKnownOrTellNothingApart) {
    EXPECT_THAT(racksFor({{"a"}, {""}, {"b"}}), IsEmpty());
    EXPECT_THAT(racksFor({{"a"}, {"a"}, {"a"}}), IsEmpty());
    EXPECT_THAT(racksFor({{"a"}, {"b"}, {"c"}}), IsEmpty());
}

TEST(Racks, AreNoneWhereTheirLinksAreAsWideAsTheirCards) {
    EXPECT_THAT(racksFor({{"a", 20, 10}, {"a", 0, 10}, {"b", 10, 10}}), IsEmpty());
    EXPECT_THAT(racksFor({{"a", 19, 10}, {"a", 0, 10}, {"b", 10, 10}}),
                ElementsAre(ElementsAre(0, 0, 1)));
    EXPECT_THAT(racksFor({{"a", 20, 0}, {"a", 0, 10}, {"b", 10, 10}}),
                ElementsAre(ElementsAre(0, 0, 1)));  // a card that is not known
}

TEST(Racks, OfUnlikeDepthAreRefused) {
    const auto refused = racksOf(Layout::of({0, 1}), {{"x/a"}, {"b"}});
    EXPECT_EQ(refused.status().code(), Status::Code::kConfiguration);
    EXPECT_THAT(refused.status().what(), HasSubstr("\"x/a\" and \"b\""));
}

/// Every collective that looks at racks, of a size that makes the selector do so.
void exchange(Rank rank, Communicator& communicator, const CallOptions& options) {
    const int ranks = communicator.ranks();
    constexpr int kCount = 10'000;
    const auto right = [&](const std::shared_ptr<Work>& work) {
        EXPECT_TRUE(work->status().ok()) << work->status().what();
        return work->status().ok();
    };
    std::vector<std::int32_t> sum(kCount, 1 << rank);
    ASSERT_TRUE(right(communicator.call(allReduceOf(sum), options)));
    EXPECT_EQ(sum, std::vector<std::int32_t>(kCount, (1 << ranks) - 1));

    const std::vector<std::int32_t> own(kCount, rank);
    std::vector<std::int32_t> all(static_cast<std::size_t>(ranks) * kCount);
    ASSERT_TRUE(
        right(communicator.call(callOf(Collective::kAllGather, own, all, kCount), options)));
    std::vector<std::int32_t> blocks;
    std::vector<std::int32_t> scattered;
    for (int block = 0; block < ranks; ++block) {
        blocks.insert(blocks.end(), kCount, block);
        scattered.insert(scattered.end(), kCount, 100 * rank + block);
    }
    EXPECT_EQ(all, blocks);

    std::vector<std::int32_t> mine(kCount);
    ASSERT_TRUE(right(
        communicator.call(callOf(Collective::kReduceScatter, scattered, mine, kCount), options)));
    const int expected = 100 * ranks * (ranks - 1) / 2 + ranks * rank;
    EXPECT_EQ(mine, std::vector<std::int32_t>(kCount, expected));

    ASSERT_TRUE(
        right(communicator.call(callOf(Collective::kAllToAll, scattered, all, kCount), options)));
    for (int block = 0; block < ranks; ++block) {
        const std::size_t first = static_cast<std::size_t>(block) * kCount;
        EXPECT_EQ(all[first], 100 * block + rank);
        EXPECT_EQ(all[first + kCount - 1], 100 * block + rank);
    }
    std::vector<std::int32_t> sent(kCount, rank == 1 ? 77 : 0);
    ASSERT_TRUE(
        right(communicator.call(callOf(Collective::kBroadcast, sent, sent, kCount, 1), options)));
    EXPECT_EQ(sent, std::vector<std::int32_t>(kCount, 77));
}

TEST(Racks, AreCrossedWithTheRightValues) {
    const std::pair<std::vector<int>, std::vector<const char*>> jobs[] = {
        {{0, 0, 1, 1, 2, 2, 3, 3}, {"a", "a", "b", "b"}},
        {{0, 1, 2, 3, 0, 1}, {"a", "b", "a", "b"}},
        {{0, 1, 2, 3, 4}, {"x/a", "x/a", "x/b", "y/c", "y/c"}}};
    for (const auto& [nodes, racks] : jobs) {
        LocalJob job(nodes);
        for (Rank rank = 0; rank < job.ranks(); ++rank) {
            const auto node = static_cast<std::size_t>(nodes[static_cast<std::size_t>(rank)]);
            job.runtime(rank).setRack({racks[node], 0, 0});
        }
        job.run([&](Rank rank, Communicator& communicator) {
            EXPECT_FALSE(communicator.layout().racks.empty());
            exchange(rank, communicator, blocking());
        });
    }
}

}  // namespace
}  // namespace isthmus::test
