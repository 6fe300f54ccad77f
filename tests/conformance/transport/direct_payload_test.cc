// Which payloads a card carries itself: seen at the card of the tests' own.
#include "tests/conformance/transport/transport_world.hpp"
#include "tests/support/rma/stand_in_device.hpp"

namespace isthmus {
namespace {

/// What transfers moved for one message from 0 to 1.
std::uint64_t transferredFor(TransportWorld& world, std::size_t bytes, int parts) {
    static std::uint64_t sequence = 0;
    Posted send(tagOf(++sequence), bytes, parts);
    Posted receive(tagOf(sequence), bytes, 2);
    const std::uint64_t before = standInTransferredBytes();
    world.link(1, 0).postRecv(receive.operation);
    world.link(0, 1).postSend(send.fill(sequence).operation);
    EXPECT_TRUE(world.runUntil([&] { return send.isDone() && receive.isDone(); }));
    EXPECT_EQ(receive.firstWrong(sequence), -1);
    EXPECT_TRUE(receive.isGuardIntact());
    return standInTransferredBytes() - before;
}

TEST(DirectPayload, EveryByteOfALargeMessageGoesByPut) {
    const auto world = makeWorld("standin", 2);
    transferredFor(*world, 8, 1);  // both are connected
    transferredFor(*world, 8 << 20, 1);
    for (const std::size_t bytes :
         {std::size_t{64} << 10, std::size_t{1'000'003}, std::size_t{9} << 20}) {
        EXPECT_EQ(transferredFor(*world, bytes, 3), bytes);
    }
}

TEST(DirectPayload, ShortOnesAndThoseInManyPiecesAreCopied) {
    const auto world = makeWorld("standin", 2);
    transferredFor(*world, 8, 1);
    EXPECT_EQ(transferredFor(*world, (64 << 10) - 1, 1), 0U);
    EXPECT_EQ(transferredFor(*world, 1 << 20, 17), 0U);
}

TEST(DirectPayload, WhatCannotBeRegisteredIsCopied) {
    const auto world = makeWorld("strict_standin", 2);  // every third registration fails
    std::uint64_t moved = 0;
    constexpr std::size_t kBytes = 1 << 20;
    for (int run = 0; run < 9; ++run) moved += transferredFor(*world, kBytes, 1);
    EXPECT_GT(moved, 0U);
    EXPECT_LT(moved, 9 * kBytes);
    EXPECT_EQ(moved % kBytes, 0U);
}

}  // namespace
}  // namespace isthmus
