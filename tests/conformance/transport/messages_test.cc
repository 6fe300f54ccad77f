#include <algorithm>
#include <random>

#include "tests/conformance/transport/transport_world.hpp"

namespace isthmus {
namespace {

class Messages : public testing::TestWithParam<std::string> {
protected:
    void SetUp() override {
        world = makeWorld(GetParam(), 3);
        ASSERT_NE(world, nullptr);
    }

    std::unique_ptr<TransportWorld> world;
};

/// Of the content that one of ten sends as its `number`th.
std::uint64_t seedOf(int number, int position) {
    const int seed = 10 * number + position;
    return static_cast<std::uint64_t>(seed);
}

TEST_P(Messages, EveryLengthArrivesWhole) {
    std::uint64_t sequence = 0;
    for (const std::size_t bytes :
         {std::size_t{0}, std::size_t{1}, std::size_t{63}, std::size_t{4096}, std::size_t{4097},
          std::size_t{32768}, std::size_t{32769}, std::size_t{262144}, std::size_t{262145},
          std::size_t{1000003}, std::size_t{16} << 20}) {
        for (const bool isReceiverFirst : {true, false}) {
            const MessageTag tag = tagOf(++sequence);
            Posted send(tag, bytes, 3);
            Posted receive(tag, bytes, 7);
            send.fill(sequence);
            if (isReceiverFirst) world->link(1, 0).postRecv(receive.operation);
            world->link(0, 1).postSend(send.operation);
            if (!isReceiverFirst) {
                world->settle();
                world->link(1, 0).postRecv(receive.operation);
            }
            ASSERT_TRUE(world->runUntil([&] { return send.isDone() && receive.isDone(); }))
                << bytes << " bytes, receiver first " << isReceiverFirst;
            ASSERT_TRUE(send.status.ok()) << send.status.what();
            ASSERT_TRUE(receive.status.ok()) << receive.status.what();
            ASSERT_EQ(receive.firstWrong(sequence), -1) << bytes << " bytes";
            ASSERT_TRUE(receive.isGuardIntact());
        }
    }
}

TEST_P(Messages, TagsMeetWhateverTheOrderOfPosts) {
    constexpr int kMessages = 400;
    std::vector<std::unique_ptr<Posted>> sends;
    std::vector<std::unique_ptr<Posted>> receives;
    for (int at = 0; at < kMessages; ++at) {
        MessageTag tag = tagOf(at / 16);
        tag.index = static_cast<std::uint32_t>(at % 4);
        tag.channel = static_cast<std::uint16_t>(at / 4 % 2);
        tag.segment = static_cast<std::uint32_t>(at / 8 % 2);
        const std::size_t bytes = at % 10 == 0 ? 100'000 : static_cast<std::size_t>(at);
        sends.push_back(std::make_unique<Posted>(tag, bytes));
        sends.back()->fill(static_cast<std::uint64_t>(at));
        sends.back()->operation.priority = static_cast<std::uint8_t>(at % 11);
        receives.push_back(std::make_unique<Posted>(tag, bytes));
    }
    std::vector<int> order(2 * kMessages);
    for (int at = 0; at < 2 * kMessages; ++at) order[at] = at;
    std::mt19937 random(5);
    std::shuffle(order.begin(), order.end(), random);
    for (const int at : order) {
        if (at < kMessages) {
            world->link(0, 1).postSend(sends[at]->operation);
        } else {
            world->link(1, 0).postRecv(receives[at - kMessages]->operation);
        }
        if (at % 3 == 0) world->step();
    }
    ASSERT_TRUE(world->runUntil([&] {
        return std::all_of(receives.begin(), receives.end(),
                           [](auto& each) { return each->isDone(); });
    }));
    for (int at = 0; at < kMessages; ++at) {
        EXPECT_TRUE(receives[at]->isGood()) << at << " " << receives[at]->status.what();
        EXPECT_TRUE(sends[at]->isGood()) << at << " " << sends[at]->status.what();
        EXPECT_EQ(receives[at]->firstWrong(static_cast<std::uint64_t>(at)), -1) << at;
    }
}

TEST_P(Messages, NothingCompletesInsideAPost) {
    Posted early(tagOf(1), 8);
    Posted receive(tagOf(1), 8);
    world->link(1, 0);  // who shares memory opens when both know of each other
    world->link(0, 1).postSend(early.operation);
    EXPECT_EQ(early.completions, 0);
    ASSERT_TRUE(world->runUntil([&] { return early.isDone(); }));
    ASSERT_TRUE(world->runUntil([&] { return world->link(1, 0).isAnnounced(tagOf(1)); }));
    world->link(1, 0).postRecv(receive.operation);  // the bytes are there already
    EXPECT_EQ(receive.completions, 0);
    EXPECT_TRUE(world->runUntil([&] { return receive.isDone(); }));
    world->settle();
    EXPECT_EQ(receive.completions, 1);
    EXPECT_EQ(early.completions, 1);
}

TEST_P(Messages, ACompletionMayPostTheNext) {
    constexpr int kRounds = 50;
    std::vector<std::unique_ptr<Posted>> sends;
    std::vector<std::unique_ptr<Posted>> receives;
    for (int at = 0; at < kRounds; ++at) {
        const std::size_t bytes = at % 2 == 0 ? 10 : 50'000;
        sends.push_back(std::make_unique<Posted>(tagOf(at), bytes));
        receives.push_back(std::make_unique<Posted>(tagOf(at), bytes));
        sends.back()->fill(static_cast<std::uint64_t>(at));
    }
    for (int at = 0; at + 1 < kRounds; ++at) {
        sends[at]->onDone = [&, at] { world->link(0, 1).postSend(sends[at + 1]->operation); };
        receives[at]->onDone = [&, at] { world->link(1, 0).postRecv(receives[at + 1]->operation); };
    }
    world->link(0, 1).postSend(sends[0]->operation);
    world->link(1, 0).postRecv(receives[0]->operation);
    ASSERT_TRUE(world->runUntil([&] { return receives.back()->isDone(); }));
    for (int at = 0; at < kRounds; ++at) {
        EXPECT_EQ(receives[at]->firstWrong(static_cast<std::uint64_t>(at)), -1);
    }
}

TEST_P(Messages, BothDirectionsBeyondTheCreditAtOnce) {
    // 3 MiB of small messages each way that nobody has asked for: three windows.
    constexpr int kMessages = 192;
    constexpr std::size_t kBytes = 16 * 1024;
    std::vector<std::unique_ptr<Posted>> sends;
    std::vector<std::unique_ptr<Posted>> receives;
    for (int at = 0; at < kMessages; ++at) {
        for (int side = 0; side < 2; ++side) {
            sends.push_back(std::make_unique<Posted>(tagOf(at), kBytes));
            sends.back()->fill(sends.size() - 1);
            receives.push_back(std::make_unique<Posted>(tagOf(at), kBytes));
            world->link(side, 1 - side).postSend(sends.back()->operation);
        }
    }
    world->settle();
    const auto done =
        std::count_if(sends.begin(), sends.end(), [](auto& each) { return each->isDone(); });
    EXPECT_GT(done, 0);
    EXPECT_LE(done, 2 * 64);  // a window of 1 MiB holds fewer than 64 of these
    for (int at = kMessages - 1; at >= 0; --at) {
        for (int side = 0; side < 2; ++side) {
            world->link(1 - side, side).postRecv(receives[2 * at + side]->operation);
        }
    }
    ASSERT_TRUE(world->runUntil([&] {
        return std::all_of(receives.begin(), receives.end(),
                           [](auto& each) { return each->isDone(); }) &&
               std::all_of(sends.begin(), sends.end(), [](auto& each) { return each->isDone(); });
    }));
    for (std::size_t at = 0; at < receives.size(); ++at) {
        EXPECT_EQ(receives[at]->firstWrong(at), -1) << at;
    }
}

TEST_P(Messages, LargeBothWaysWithThree) {
    constexpr std::size_t kBytes = 3 << 20;
    std::vector<std::unique_ptr<Posted>> sends;
    std::vector<std::unique_ptr<Posted>> receives;
    for (int from = 0; from < 3; ++from) {
        for (int to = 0; to < 3; ++to) {
            if (from == to) continue;
            sends.push_back(std::make_unique<Posted>(tagOf(1), kBytes));
            sends.back()->fill(seedOf(from, to));
            world->link(from, to).postSend(sends.back()->operation);
        }
    }
    for (int from = 0; from < 3; ++from) {
        for (int to = 0; to < 3; ++to) {
            if (from == to) continue;
            receives.push_back(std::make_unique<Posted>(tagOf(1), kBytes));
            world->link(to, from).postRecv(receives.back()->operation);
        }
    }
    ASSERT_TRUE(world->runUntil([&] {
        return std::all_of(receives.begin(), receives.end(),
                           [](auto& each) { return each->isDone(); });
    }));
    std::size_t at = 0;
    for (int from = 0; from < 3; ++from) {
        for (int to = 0; to < 3; ++to) {
            if (from == to) continue;
            EXPECT_EQ(receives[at++]->firstWrong(seedOf(from, to)), -1);
        }
    }
}

TEST_P(Messages, AProcessReachesItself) {
    Posted send(tagOf(1), 200'000);
    Posted receive(tagOf(1), 200'000);
    Endpoint& self = world->link(0, 0);
    self.postSend(send.fill(3).operation);
    self.postRecv(receive.operation);
    ASSERT_TRUE(world->runUntil([&] { return send.isDone() && receive.isDone(); }));
    EXPECT_EQ(receive.firstWrong(3), -1);
}

TEST_P(Messages, DifferentLengthsAreAMismatchOnBothSides) {
    struct Case {
        std::size_t sent;
        std::size_t expected;
        bool isReceiverFirst;
    };
    int sequence = 0;
    for (const Case& each :
         {Case{100'000, 200'000, true}, Case{100'000, 200'000, false}, Case{100'000, 8, true},
          Case{100'000, 8, false}, Case{8, 100'000, true}, Case{8, 9, true}, Case{8, 9, false}}) {
        Posted send(tagOf(++sequence), each.sent);
        Posted receive(tagOf(sequence), each.expected);
        if (each.isReceiverFirst) {
            world->link(1, 0).postRecv(receive.operation);
            world->settle();
        }
        world->link(0, 1).postSend(send.operation);
        if (!each.isReceiverFirst) {
            world->settle();
            world->link(1, 0).postRecv(receive.operation);
        }
        ASSERT_TRUE(world->runUntil([&] { return send.isDone() && receive.isDone(); }))
            << each.sent << " to " << each.expected;
        EXPECT_EQ(receive.status.code(), Status::Code::kMismatch);
        // A short message whose memory was free before anybody could object has gone well here.
        const bool canObject = each.sent > 32 * 1024 || each.expected > 32 * 1024;
        EXPECT_EQ(send.status.code(), canObject ? Status::Code::kMismatch : Status::Code::kOk)
            << each.sent << " to " << each.expected << " receiver first " << each.isReceiverFirst;
        EXPECT_TRUE(receive.isGuardIntact());
    }
    // The connection is as good as before.
    Posted send(tagOf(100), 50'000);
    Posted receive(tagOf(100), 50'000);
    world->link(1, 0).postRecv(receive.operation);
    world->link(0, 1).postSend(send.fill(4).operation);
    ASSERT_TRUE(world->runUntil([&] { return receive.isDone(); }));
    EXPECT_EQ(receive.firstWrong(4), -1);
}

TEST_P(Messages, AnUrgentMessageOvertakesALargeOne) {
    Posted large(tagOf(1), 64 << 20);
    Posted largeReceive(tagOf(1), 64 << 20);
    Posted urgent(tagOf(2), 100'000);
    Posted urgentReceive(tagOf(2), 100'000);
    large.operation.priority = 3;
    std::string order;
    largeReceive.onDone = [&] { order += "large "; };
    urgentReceive.onDone = [&] { order += "urgent "; };
    world->link(1, 0).postRecv(largeReceive.operation);
    world->link(1, 0).postRecv(urgentReceive.operation);
    world->link(0, 1).postSend(large.operation);
    ASSERT_TRUE(world->runUntil([&] { return largeReceive.operation.moved > 0; }));
    world->link(0, 1).postSend(urgent.operation);
    ASSERT_TRUE(world->runUntil([&] { return largeReceive.isDone() && urgentReceive.isDone(); }));
    EXPECT_EQ(order, "urgent large ");
}

TEST_P(Messages, CountersSayWhatWasMoved) {
    Posted send(tagOf(1), 100'000);
    Posted receive(tagOf(1), 100'000);
    world->link(1, 0).postRecv(receive.operation);
    world->link(0, 1).postSend(send.operation);
    ASSERT_TRUE(world->runUntil([&] { return send.isDone() && receive.isDone(); }));
    const WireCounters sender = world->link(0, 1).counters();
    const WireCounters receiver = world->link(1, 0).counters();
    EXPECT_EQ(sender.sentPayload, 100'000U);
    EXPECT_EQ(receiver.receivedPayload, 100'000U);
    EXPECT_EQ(sender.receivedPayload, 0U);
    EXPECT_EQ(receiver.receivedTotal, sender.sentTotal);
    EXPECT_GT(sender.sentTotal, 100'000U);
    EXPECT_LT(sender.sentTotal, 100'500U);
}

TEST_P(Messages, ControlMessagesKeepTheirOrder) {
    const auto messageOf = [](int at) {
        return Bytes(200 * static_cast<std::size_t>(at), static_cast<std::byte>(at));
    };
    for (int at = 0; at < 20; ++at) world->link(0, 1).sendControl(messageOf(at));
    world->link(1, 0);
    auto& controls = world->at(1).recorder.controls;
    ASSERT_TRUE(world->runUntil([&] { return controls.size() == 20; }));
    for (int at = 0; at < 20; ++at) EXPECT_EQ(controls[at], messageOf(at));
}

TEST_P(Messages, TheFingerprintIsAnnouncedToWhoIsLate) {
    for (const std::size_t bytes : {std::size_t{10}, std::size_t{100'000}}) {
        Posted send(tagOf(bytes), bytes);
        send.operation.fingerprint = {3, 4, 5, 6, -1, 77, 0xfeedULL};
        world->link(0, 1).postSend(send.operation);
        world->link(1, 0);
        auto& seen = world->at(1).recorder.announcements;
        ASSERT_TRUE(world->runUntil([&] { return !seen.empty() && seen.back().bytes == bytes; }));
        EXPECT_EQ(seen.back().fingerprint, send.operation.fingerprint);
        EXPECT_EQ(seen.back().tag, tagOf(bytes));
        EXPECT_TRUE(world->link(1, 0).isAnnounced(tagOf(bytes)));
        EXPECT_FALSE(world->link(1, 0).isAnnounced(tagOf(bytes + 1)));
        Posted receive(tagOf(bytes), bytes);
        world->link(1, 0).postRecv(receive.operation);
        ASSERT_TRUE(world->runUntil([&] { return receive.isDone() && send.isDone(); }));
        EXPECT_FALSE(world->link(1, 0).isAnnounced(tagOf(bytes)));
    }
    // And a receiver's readiness to the sender.
    Posted receive(tagOf(1), 100'000);
    receive.operation.fingerprint = {1, 2, 3, 4, 5, 6, 7};
    world->link(1, 0).postRecv(receive.operation);
    auto& seen = world->at(0).recorder.announcements;
    seen.clear();
    ASSERT_TRUE(world->runUntil([&] { return !seen.empty(); }));
    EXPECT_EQ(seen[0].fingerprint, receive.operation.fingerprint);
    world->link(1, 0).cancel(7, Status::aborted("end of test"));
    ASSERT_TRUE(world->runUntil([&] { return receive.isDone(); }));
}

INSTANTIATE_TEST_SUITE_P(Over, Messages, testing::ValuesIn(worldKinds()),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace isthmus
