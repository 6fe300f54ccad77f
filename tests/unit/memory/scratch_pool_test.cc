#include "comm/memory/scratch_pool.hpp"

#include <cstdint>

#include <gtest/gtest.h>

namespace isthmus {
namespace {

constexpr std::size_t kMebi = std::size_t(1) << 20;

class ScratchPoolTest : public testing::Test {
protected:
    void SetUp() override {
        auto made = Arena::create(16 * kMebi);
        ASSERT_TRUE(made.ok()) << made.status().what();
        arena_ = std::move(*made);
    }

    ScratchPool::Block take(ScratchPool& pool, std::size_t bytes) {
        const auto block = pool.take(bytes);
        EXPECT_TRUE(block.ok()) << block.status().what();
        return block.ok() ? *block : ScratchPool::Block{};
    }

    std::unique_ptr<Arena> arena_;
};

TEST_F(ScratchPoolTest, HandsTheSameBlockOutAgain) {
    ScratchPool pool(*arena_);
    const auto first = take(pool, 100000);
    EXPECT_GE(first.bytes, 100000u);
    EXPECT_LE(first.bytes, 125000u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first.data) % 128, 0u);
    pool.give(first);
    EXPECT_EQ(pool.keptBytes(), first.bytes);
    EXPECT_EQ(take(pool, 99000).data, first.data);
    EXPECT_EQ(pool.keptBytes(), 0u);
    EXPECT_NE(take(pool, 99000).data, first.data);
}

TEST_F(ScratchPoolTest, EverySizeGetsEnoughAndReturnsToItsOwnClass) {
    ScratchPool pool(*arena_);
    for (std::size_t bytes = 0; bytes < 70000; bytes = bytes * 5 / 4 + 1) {
        const auto block = take(pool, bytes);
        ASSERT_GE(block.bytes, bytes);
        pool.give(block);
        const auto again = take(pool, block.bytes);
        EXPECT_EQ(again.data, block.data) << bytes;
        EXPECT_EQ(again.bytes, block.bytes) << bytes;
        pool.give(again);
    }
}

TEST_F(ScratchPoolTest, KeepsNoMoreThanItsLimit) {
    ScratchPool pool(*arena_, 3 * kMebi);
    const auto first = take(pool, 2 * kMebi);
    const auto second = take(pool, 2 * kMebi);
    pool.give(first);
    pool.give(second);
    EXPECT_EQ(pool.keptBytes(), 2 * kMebi);
    EXPECT_EQ(arena_->usedBytes(), 2 * kMebi);
}

TEST_F(ScratchPoolTest, GivesUpWhatItKeepsBeforeItFails) {
    ScratchPool pool(*arena_);
    const auto half = take(pool, 8 * kMebi);
    const auto rest = take(pool, 7 * kMebi);
    pool.give(half);
    pool.give(rest);
    const auto all = take(pool, 16 * kMebi);
    ASSERT_NE(all.data, nullptr);
    EXPECT_EQ(pool.take(4096).status().code(), Status::Code::kResource);
    EXPECT_EQ(pool.take(~std::size_t(0)).status().code(), Status::Code::kResource);
    pool.give(all);
}

TEST_F(ScratchPoolTest, LeavesTheArenaEmpty) {
    {
        ScratchPool pool(*arena_);
        pool.give(take(pool, 5000));
        pool.give(take(pool, 50000));
        EXPECT_NE(arena_->usedBytes(), 0u);
    }
    EXPECT_EQ(arena_->usedBytes(), 0u);
}

}  // namespace
}  // namespace isthmus
