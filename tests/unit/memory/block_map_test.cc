#include <map>
#include <random>

#include <gtest/gtest.h>

#include "comm/memory/block_map.hpp"

namespace isthmus {
namespace {

TEST(BlockMap, TakesTheSmallestHoleThatFits) {
    BlockMap map(4096);
    const auto small = map.take(128, 64);
    const auto between = map.take(64, 64);
    const auto large = map.take(512, 64);
    const auto behind = map.take(64, 64);
    ASSERT_TRUE(small && between && large && behind);
    map.give(*large);
    map.give(*small);
    EXPECT_EQ(map.take(100, 64), small);  // and not the 512 bytes, nor the rest
    EXPECT_EQ(map.take(500, 64), large);
}

TEST(BlockMap, JoinsNeighboursOnBothSides) {
    BlockMap map(192);
    const auto first = map.take(64, 64);
    const auto second = map.take(64, 64);
    const auto third = map.take(64, 64);
    ASSERT_TRUE(first && second && third);
    EXPECT_FALSE(map.take(1, 64));
    map.give(*first);
    map.give(*third);
    EXPECT_FALSE(map.take(128, 64));
    const BlockMap::Freed freed = map.give(*second);
    EXPECT_EQ(freed.block.begin, 64u);
    EXPECT_EQ(freed.block.end, 128u);
    EXPECT_EQ(freed.hole.begin, 0u);
    EXPECT_EQ(freed.hole.end, 192u);
    EXPECT_EQ(map.take(192, 64), 0u);
}

TEST(BlockMap, AlignsAndKeepsTheGapUsable) {
    BlockMap map(8192);
    ASSERT_EQ(map.take(1, 64), 0u);
    ASSERT_EQ(map.take(4096, 4096), 4096u);
    EXPECT_EQ(map.take(4096 - 64, 64), 64u);
    EXPECT_FALSE(map.take(1, 64));
    EXPECT_EQ(map.usedBytes(), 8192u);
}

TEST(BlockMap, RefusesSizesNearTheLimitOfTheType) {
    BlockMap map(4096);
    EXPECT_FALSE(map.take(~std::uint64_t(0), 64));
    EXPECT_FALSE(map.take(~std::uint64_t(0) - 63, 64));
    EXPECT_FALSE(map.take(4097, 64));
}

TEST(BlockMap, NeverOverlapsAndForgetsNothingUnderRandomUse) {
    constexpr std::uint64_t kCapacity = 1 << 16;
    BlockMap map(kCapacity);
    std::map<std::uint64_t, std::uint64_t> mine;
    std::mt19937_64 random(7);
    for (int step = 0; step < 20000; ++step) {
        if (random() % 2 == 0 || mine.empty()) {
            const std::uint64_t bytes = random() % 3000;
            const std::uint64_t alignment = std::uint64_t(64) << random() % 4;
            const auto offset = map.take(bytes, alignment);
            if (!offset) continue;
            ASSERT_EQ(*offset % alignment, 0u);
            ASSERT_LE(*offset + bytes, kCapacity);
            const auto after = mine.lower_bound(*offset);
            ASSERT_TRUE(after == mine.end() || *offset + bytes <= after->first);
            ASSERT_TRUE(after == mine.begin() || std::prev(after)->second <= *offset);
            mine.emplace(*offset, *offset + std::max<std::uint64_t>(bytes, 1));
        } else {
            const auto chosen = std::next(mine.begin(), static_cast<long>(random() % mine.size()));
            map.give(chosen->first);
            mine.erase(chosen);
        }
    }
    for (const auto& [begin, end] : mine) map.give(begin);
    EXPECT_EQ(map.usedBytes(), 0u);
    EXPECT_EQ(map.take(kCapacity, 64), 0u);
}

}  // namespace
}  // namespace isthmus
