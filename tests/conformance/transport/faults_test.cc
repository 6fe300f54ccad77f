#include <algorithm>

#include "tests/conformance/transport/transport_world.hpp"

namespace isthmus {
namespace {

class Faults : public testing::TestWithParam<std::string> {
protected:
    void SetUp() override {
        world = makeWorld(GetParam(), 3);
        ASSERT_NE(world, nullptr);
    }
    /// One message from 0 to 1 and back, so that both are connected.
    void meet() {
        for (int side = 0; side < 2; ++side) {
            Posted send(tagOf(1'000'000), 8);
            Posted receive(tagOf(1'000'000), 8);
            world->link(1 - side, side).postRecv(receive.operation);
            world->link(side, 1 - side).postSend(send.operation);
            ASSERT_TRUE(world->runUntil([&] { return send.isDone() && receive.isDone(); }));
        }
    }

    std::unique_ptr<TransportWorld> world;
};

TEST_P(Faults, CancelFreesTheMemoryOfEveryKindOfOperation) {
    meet();
    constexpr std::size_t kLarge = 8 << 20;
    auto streaming = std::make_unique<Posted>(tagOf(1, 5), kLarge);
    auto streamed = std::make_unique<Posted>(tagOf(1, 5), kLarge);
    Posted waiting(tagOf(2, 5), kLarge);
    Posted receive(tagOf(3, 5), 100);
    Posted otherSend(tagOf(4, 6), kLarge);
    Posted otherReceive(tagOf(4, 6), kLarge);
    world->link(1, 0).postRecv(streamed->operation);
    world->link(1, 0).postRecv(otherReceive.operation);
    world->link(0, 1).postSend(streaming->fill(1).operation);
    ASSERT_TRUE(world->runUntil([&] { return streamed->operation.moved > 0; }));
    world->link(0, 1).postSend(waiting.operation);
    world->link(0, 1).postRecv(receive.operation);
    world->link(0, 1).postSend(otherSend.fill(2).operation);
    const bool wasDone = streaming->isDone();
    world->link(0, 1).cancel(5, Status::aborted("given up"));
    EXPECT_EQ(waiting.completions, 0);  // not inside the call
    world->at(0).transport->progress(world->now());
    if (!world->freesAtOnce()) world->runUntil([&] { return streaming->isDone(); });
    ASSERT_TRUE(streaming->isDone() && waiting.isDone() && receive.isDone());
    EXPECT_EQ(streaming->status.code(), wasDone ? Status::Code::kOk : Status::Code::kAborted);
    EXPECT_EQ(waiting.status.what(), "given up");
    EXPECT_EQ(receive.status.code(), Status::Code::kAborted);
    streaming.reset();  // nobody may look at it any more

    world->link(1, 0).cancel(5, Status::aborted("given up too"));
    world->at(1).transport->progress(world->now());
    if (!world->freesAtOnce()) world->runUntil([&] { return streamed->isDone(); });
    ASSERT_TRUE(streamed->isDone());
    streamed.reset();
    ASSERT_TRUE(world->runUntil([&] { return otherReceive.isDone() && otherSend.isDone(); }));
    EXPECT_TRUE(otherReceive.isGood()) << otherReceive.status.what();
    EXPECT_EQ(otherReceive.firstWrong(2), -1);
    EXPECT_TRUE(world->at(0).recorder.losses.empty());
    EXPECT_TRUE(world->at(1).recorder.losses.empty());
}

TEST_P(Faults, MessagesOfACancelledCommunicatorHoldNoCredit) {
    // Three windows of messages that nobody will ever receive, then one that somebody will.
    for (std::uint64_t communicator = 100; communicator < 103; ++communicator) {
        std::vector<std::unique_ptr<Posted>> sends;
        for (int at = 0; at < 60; ++at) {
            sends.push_back(std::make_unique<Posted>(tagOf(at, communicator), 16 * 1024));
            world->link(0, 1).postSend(sends.back()->operation);
        }
        world->link(1, 0);
        ASSERT_TRUE(world->runUntil([&] {
            return std::all_of(sends.begin(), sends.end(),
                               [](auto& each) { return each->isDone(); });
        }));
        // Credit of what is dropped on its arrival is told a quarter of a window at a time.
        ASSERT_TRUE(world->runUntil([&] {
            return std::all_of(sends.begin(), sends.end(), [&](auto& each) {
                return world->link(1, 0).isAnnounced(each->operation.tag);
            });
        }));
        world->link(1, 0).cancel(communicator, Status::aborted("given up"));
        EXPECT_FALSE(world->link(1, 0).isAnnounced(tagOf(1, communicator)));
        world->settle();
    }
    meet();
}

TEST_P(Faults, ALateMessageOfACancelledCommunicatorIsDropped) {
    meet();
    world->link(1, 0).cancel(9, Status::aborted("given up"));
    Posted late(tagOf(1, 9), 100);
    world->link(0, 1).postSend(late.operation);
    world->settle();
    EXPECT_FALSE(world->link(1, 0).isAnnounced(tagOf(1, 9)));
    EXPECT_TRUE(world->at(1).recorder.losses.empty());
}

TEST_P(Faults, AnAnnouncementMayCancel) {
    meet();
    Posted receive(tagOf(1, 9), 100);
    Posted send(tagOf(1, 9), 100);
    world->link(1, 0).postRecv(receive.operation);
    world->at(1).recorder.onAnnounced = [&](const MessageTag&) {
        world->link(1, 0).cancel(9, Status::mismatch("calls differ"));
    };
    world->link(0, 1).postSend(send.operation);
    ASSERT_TRUE(world->runUntil([&] { return receive.isDone(); }));
    EXPECT_EQ(receive.status.code(), Status::Code::kMismatch);
    world->settle();
    EXPECT_EQ(receive.completions, 1);
}

TEST_P(Faults, DeathCompletesEverythingAndNamesThePeer) {
    meet();
    std::vector<std::unique_ptr<Posted>> posted;
    for (int at = 0; at < 6; ++at) {
        posted.push_back(std::make_unique<Posted>(tagOf(at), at % 2 == 0 ? 100 : 1 << 20));
    }
    const std::string name = world->link(0, 1).describe();
    for (int at = 0; at < 4; ++at) world->link(0, 1).postRecv(posted[at]->operation);
    Posted sender(tagOf(50), 4 << 20);
    world->link(0, 1).postSend(sender.operation);  // waits for a grant that never comes
    Endpoint& endpoint = world->link(0, 1);
    world->kill(1);
    ASSERT_TRUE(world->runUntil([&] { return !world->at(0).recorder.losses.empty(); }));
    for (int at = 0; at < 4; ++at) {
        ASSERT_TRUE(posted[at]->isDone());
        EXPECT_EQ(posted[at]->status.code(), Status::Code::kPeerLost);
        EXPECT_NE(posted[at]->status.what().find(name), std::string::npos)
            << posted[at]->status.what();
    }
    EXPECT_EQ(sender.status.code(), Status::Code::kPeerLost);
    EXPECT_EQ(endpoint.state(), Endpoint::State::kLost);
    EXPECT_EQ(world->at(0).recorder.losses[0].state, Endpoint::State::kLost);
    endpoint.postSend(posted[4]->operation);
    endpoint.postRecv(posted[5]->operation);
    EXPECT_EQ(posted[4]->completions, 0);
    ASSERT_TRUE(world->runUntil([&] { return posted[4]->isDone() && posted[5]->isDone(); }));
    EXPECT_EQ(posted[4]->status.code(), Status::Code::kPeerLost);
    world->settle();
    EXPECT_EQ(world->at(0).recorder.losses.size(), 1U);
    EXPECT_EQ(posted[0]->completions, 1);
}

TEST_P(Faults, DeathInTheMiddleOfALargeMessage) {
    meet();
    for (const bool isSenderKilled : {true, false}) {
        world = makeWorld(GetParam(), 2);
        meet();
        auto send = std::make_unique<Posted>(tagOf(1), 64 << 20);
        auto receive = std::make_unique<Posted>(tagOf(1), 64 << 20);
        world->link(1, 0).postRecv(receive->operation);
        world->link(0, 1).postSend(send->operation);
        ASSERT_TRUE(world->runUntil([&] { return receive->operation.moved > 0; }));
        world->kill(isSenderKilled ? 0 : 1);
        Posted& survivor = isSenderKilled ? *receive : *send;
        ASSERT_TRUE(world->runUntil([&] { return survivor.isDone(); }));
        EXPECT_EQ(survivor.status.code(), Status::Code::kPeerLost);
    }
}

TEST_P(Faults, WhoLeavesInOrderIsNotDead) {
    meet();
    Posted last(tagOf(1), 20'000);
    Posted lastReceive(tagOf(1), 20'000);
    world->link(0, 1).postSend(last.fill(8).operation);
    world->link(0, 1).sendControl(Bytes(5));
    world->leave(0, std::chrono::seconds(2));
    EXPECT_TRUE(last.isGood());
    EXPECT_TRUE(world->at(0).recorder.losses.empty());
    Endpoint& endpoint = world->link(1, 0);
    world->kill(0);
    ASSERT_TRUE(world->runUntil([&] { return !world->at(1).recorder.losses.empty(); }));
    EXPECT_EQ(world->at(1).recorder.losses[0].state, Endpoint::State::kLeft);
    EXPECT_EQ(world->at(1).recorder.losses[0].why.code(), Status::Code::kPeerLost);
    EXPECT_EQ(world->at(1).recorder.controls.size(), 1U);
    // What it said before it left still counts.
    endpoint.postRecv(lastReceive.operation);
    ASSERT_TRUE(world->runUntil([&] { return lastReceive.isDone(); }));
    EXPECT_TRUE(lastReceive.isGood()) << lastReceive.status.what();
    EXPECT_EQ(lastReceive.firstWrong(8), -1);
}

TEST_P(Faults, CloseCompletesWhatIsLeft) {
    meet();
    Posted receive(tagOf(1), 100);
    Posted send(tagOf(2), 1 << 20);
    world->link(0, 1).postRecv(receive.operation);
    world->link(0, 1).postSend(send.operation);
    world->at(0).transport->close(world->now() + std::chrono::milliseconds(100));
    EXPECT_TRUE(receive.isDone() && send.isDone());
    EXPECT_EQ(receive.status.code(), Status::Code::kAborted);
    EXPECT_EQ(send.status.code(), Status::Code::kAborted);
}

TEST_P(Faults, NobodySleepsWhenThereIsWork) {
    meet();
    world->settle();
    // It may have to look once more.
    EXPECT_TRUE(world->runUntil([&] { return world->at(1).transport->prepareSleep(); }));
    Posted send(tagOf(1), 100);
    world->link(0, 1).postSend(send.operation);
    ASSERT_TRUE(world->runUntil([&] {
        world->at(0).transport->progress(world->now());
        return send.isDone();
    }));
    EXPECT_EQ(world->at(1).recorder.losses.size(), 0U);
    world->at(1).transport->wakeUp();
}

INSTANTIATE_TEST_SUITE_P(Over, Faults, testing::ValuesIn(enduringWorldKinds()),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace isthmus
