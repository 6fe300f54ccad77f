#include "comm/cost/simulate.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "comm/cost/closed_form.hpp"
#include "tests/unit/cost/plans.hpp"

namespace isthmus {
namespace {

// Round numbers: 1 second per latency, 1 byte per second, work is free.
LinkModel slowWire() {
    LinkModel model;
    model.wireBytesPerSecond = 1;
    model.wireLatencySeconds = 1;
    model.messageSeconds = 0;
    model.meetSeconds = 0.5;
    model.nodeBytesPerSecond = 1e30;
    model.reduceBytesPerSecond = 1e30;
    return model;
}

PlanCall bytesCall(std::int64_t elements, int segments = 1, int window = 1) {
    PlanCall call;
    call.type = DataType::kUint8;
    call.blockElements = elements;
    call.segments = segments;
    call.window = window;
    return call;
}

double simulated(const std::vector<Plan>& plans, const Layout& layout, const PlanCall& call,
                 const LinkModel& model) {
    const Result<double> seconds = simulateSeconds(plans, layout, call, model);
    EXPECT_TRUE(seconds.ok()) << seconds.status().what();
    return seconds.ok() ? *seconds : -1;
}

TEST(Simulate, RingEqualsItsClosedForm) {
    for (int ranks = 2; ranks <= 9; ++ranks) {
        std::vector<int> nodeOf;
        for (int rank = 0; rank < ranks; ++rank) nodeOf.push_back(rank);
        const std::vector<Plan> plans =
            plansOf(Collective::kAllReduce, nodeOf, ranks, Mapping::kNone, writeRing);
        ASSERT_EQ(plans.size(), nodeOf.size());
        LinkModel model = slowWire();
        model.reduceBytesPerSecond =
            8;  // a reduce of two sources reads twice its bytes: 1/4 s each
        const double expected = flatCost(Collective::kAllReduce, "ring", ranks, 100.0 * ranks)
                                    ->seconds({1, 1, 0.25, 0});
        EXPECT_NEAR(simulated(plans, Layout::of(nodeOf), bytesCall(100 * ranks), model), expected,
                    1e-6);
    }
}

// 0 -> 1 -> 2: each hop takes 1 + 12 s for the whole, or is cut into 4 times 3 s.
void writeChain(PlanBuilder& plan) {
    const Slice all = plan.output()({0});
    if (plan.me() == 0) {
        plan.copy(all, plan.input()({0}));
        plan.send(1, plan.input()({0}));
        return;
    }
    plan.recv(plan.me() - 1, all);
    if (plan.me() + 1 < plan.ranks()) plan.send(plan.me() + 1, all);
}

TEST(Simulate, WindowOverlapsSegmentsOfAChain) {
    const std::vector<int> nodeOf = {0, 1, 2};
    const Layout layout = Layout::of(nodeOf);
    const std::vector<Plan> plans =
        plansOf(Collective::kBroadcast, nodeOf, 1, Mapping::kNone, writeChain);
    ASSERT_EQ(plans.size(), 3u);
    EXPECT_NEAR(simulated(plans, layout, bytesCall(12), slowWire()), 26, 1e-9);
    // First segment is at rank 2 after 2 * (1 + 3), the other three follow 3 s apart.
    EXPECT_NEAR(simulated(plans, layout, bytesCall(12, 4, 4), slowWire()), 17, 1e-9);
    // No overlap: a rank starts a segment when the one before has ended there; rank 1 ends at 1 + 3
    // + 3, and every further one needs latency, both transfers: 7 more, last one arrives 1 s later.
    EXPECT_NEAR(simulated(plans, layout, bytesCall(12, 4, 1), slowWire()), 29, 1e-9);
}

// Bytes leave at the sender's rate and are there no sooner than the slower of both cards allows.
TEST(Simulate, CardsMayDiffer) {
    const std::vector<int> nodeOf = {0, 1, 2};
    const std::vector<Plan> plans =
        plansOf(Collective::kBroadcast, nodeOf, 1, Mapping::kNone, writeChain);
    ASSERT_EQ(plans.size(), 3u);
    LinkModel model = slowWire();
    model.cardBytesPerSecond = {2, 1, 3};
    // 12 bytes: 0 to 1 in 1 + 12 s (the receiver's rate), 1 to 2 in 12 + 1 s (the sender's).
    EXPECT_NEAR(simulated(plans, Layout::of(nodeOf), bytesCall(12), model), 26, 1e-9);
    model.cardBytesPerSecond = {2, 2, 3};
    EXPECT_NEAR(simulated(plans, Layout::of(nodeOf), bytesCall(12), model), 14, 1e-9);
}

TEST(Simulate, LongCallsContinueAtTheirPace) {
    const std::vector<int> nodeOf = {0, 1, 2};
    const std::vector<Plan> plans =
        plansOf(Collective::kBroadcast, nodeOf, 1, Mapping::kNone, writeChain);
    ASSERT_EQ(plans.size(), 3u);
    // 1000 segments of 3 bytes: 8 s for the first, 3 s for each of the others.
    EXPECT_NEAR(simulated(plans, Layout::of(nodeOf), bytesCall(3000, 1000, 4), slowWire()),
                8 + 999 * 3, 1e-6);
}

TEST(Simulate, CardsOfANodeAreShared) {
    const std::vector<int> nodeOf = {0, 0, 1, 1};
    const std::vector<Plan> plans =
        plansOf(Collective::kAllToAll, nodeOf, 1, Mapping::kNone, [](PlanBuilder& plan) {
            const Rank peer = (plan.me() + 2) % 4;
            plan.setInPlaceSafe(false);  // else a recv waits for the send it meets
            plan.send(peer, plan.input()({peer}));
            plan.recv(peer, plan.output()({peer}));
        });
    ASSERT_EQ(plans.size(), 4u);
    EXPECT_NEAR(simulated(plans, Layout::of(nodeOf), bytesCall(10), slowWire()), 1 + 20, 1e-9);
}

TEST(Simulate, MeetingsCostTheirLatency) {
    const std::vector<int> nodeOf = {0, 0, 0};
    const std::vector<Plan> plans =
        plansOf(Collective::kBarrier, nodeOf, 1, Mapping::kAll, [](PlanBuilder& plan) {
            const std::vector<Rank> all = {0, 1, 2};
            plan.meet(all);
            plan.meet(all);
        });
    ASSERT_EQ(plans.size(), 3u);
    EXPECT_NEAR(simulated(plans, Layout::of(nodeOf), bytesCall(0), slowWire()), 1.0, 1e-9);
}

TEST(Simulate, RefusesPlansThatWaitForEver) {
    const std::vector<int> nodeOf = {0, 1};
    std::vector<Plan> plans = plansOf(Collective::kAllReduce, nodeOf, 2, Mapping::kNone, writeRing);
    ASSERT_EQ(plans.size(), 2u);
    const auto isRecv = [](const Step& step) { return step.verb == Verb::kRecv; };
    std::vector<Step>& steps = plans[1].steps;
    const auto last = std::find_if(steps.rbegin(), steps.rend(), isRecv);
    ASSERT_NE(last, steps.rend());
    steps.resize(static_cast<std::size_t>(std::distance(last, steps.rend())) - 1);
    const Result<double> seconds =
        simulateSeconds(plans, Layout::of(nodeOf), bytesCall(100), slowWire());
    ASSERT_FALSE(seconds.ok());
    EXPECT_EQ(seconds.status().code(), Status::Code::kInvalidArgument);
}

}  // namespace
}  // namespace isthmus
