// Nodes with a card for each rank: card i of every node is on rail i.
#include <gtest/gtest.h>

#include "comm/cost/bounds.hpp"
#include "comm/cost/simulate.hpp"
#include "tests/unit/cost/plans.hpp"

namespace isthmus {
namespace {

/// A byte a second over each of two cards, a second of latency.
LinkModel twoRails(double railBytesPerSecond) {
    LinkModel model;
    model.wireBytesPerSecond = 1;
    model.wireLatencySeconds = 1;
    model.messageSeconds = 0;
    model.cardsPerNode = 2;
    model.railBytesPerSecond = railBytesPerSecond;
    return model;
}

/// Two nodes of two ranks; each sends ten bytes to `peerOf` itself.
double secondsOf(Rank (*peerOf)(Rank), const LinkModel& model) {
    const std::vector<int> nodeOf = {0, 0, 1, 1};
    const std::vector<Plan> plans =
        plansOf(Collective::kAllToAll, nodeOf, 1, Mapping::kNone, [&](PlanBuilder& plan) {
            const Rank peer = peerOf(plan.me());
            plan.setInPlaceSafe(false);  // else a recv waits for the send it meets
            plan.send(peer, plan.input()({peer}));
            plan.recv(peer, plan.output()({peer}));
        });
    PlanCall call;
    call.type = DataType::kUint8;
    call.blockElements = 10;
    const Result<double> seconds = simulateSeconds(plans, Layout::of(nodeOf), call, model);
    return seconds.ok() ? *seconds : -1;
}

Rank alongTheRail(Rank me) {
    return (me + 2) % 4;
}

Rank acrossRails(Rank me) {
    return 3 - me;
}

TEST(Rails, AreCardsOfTheirOwn) {
    EXPECT_NEAR(secondsOf(alongTheRail, twoRails(0)), 1 + 10, 1e-9);
    LinkModel shared = twoRails(0);
    shared.cardsPerNode = 1;
    EXPECT_NEAR(secondsOf(alongTheRail, shared), 1 + 20, 1e-9);
}

// Each rail has two messages of ten bytes for the other one.
TEST(Rails, ReachEachOtherOverASpine) {
    EXPECT_NEAR(secondsOf(acrossRails, twoRails(0)), 1 + 10, 1e-9);
    EXPECT_NEAR(secondsOf(acrossRails, twoRails(2)), 1 + 10, 1e-9);    // both cards at once
    EXPECT_NEAR(secondsOf(acrossRails, twoRails(0.5)), 1 + 40, 1e-9);  // 20 bytes at half a byte
    EXPECT_NEAR(secondsOf(alongTheRail, twoRails(0.5)), 1 + 10, 1e-9);
}

// 64 bytes out of each of two nodes, over two cards.
TEST(Rails, DivideTheBound) {
    const Layout layout = Layout::of({0, 0, 1, 1});
    EXPECT_DOUBLE_EQ(boundSeconds(Collective::kAllReduce, layout, 64, 0, twoRails(0)), 32);
    EXPECT_DOUBLE_EQ(boundSeconds(Collective::kBroadcast, layout, 64, 0, twoRails(0)), 32);
}

}  // namespace
}  // namespace isthmus
