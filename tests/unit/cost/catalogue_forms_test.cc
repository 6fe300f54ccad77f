#include <gtest/gtest.h>

#include "comm/cost/closed_form.hpp"
#include "comm/cost/simulate.hpp"

namespace isthmus {
namespace {

/// An entry by messages alone, and how far the simulator may be from its closed form, as shares of
/// the form. It is exact but for sums: those of one way round a ring overlap the messages of the
/// other (a fifth at most: what all sums cost here), a sum of four reads four times its bytes where
/// the form has three sums of two (a tenth at most), and ranks that fold do not wait for others.
struct Form {
    Collective collective;
    const char* algorithm;
    double slower;
    double quicker;
    bool isPowersOnly = false;
};

const Form kForms[] = {
    {Collective::kAllReduce, "ring", 1e-6, 1e-6},
    {Collective::kAllReduce, "doubling", 1e-6, 1e-6, true},
    {Collective::kAllReduce, "halving", 1e-6, 1e-6, true},
    {Collective::kAllReduce, "halving", 0.03, 1e-6},
    {Collective::kAllReduce, "bidirectional_ring", 1e-6, 0.2},
    {Collective::kAllReduce, "butterfly", 1e-6, 0.1},
    {Collective::kReduceScatter, "butterfly", 1e-6, 0.1},
    {Collective::kAllGather, "butterfly", 1e-6, 1e-6},
    {Collective::kAllToAll, "butterfly", 1e-6, 1e-6},
    {Collective::kAllGather, "ring", 1e-6, 1e-6},
    {Collective::kAllGather, "bruck", 1e-6, 1e-6},
    {Collective::kAllGather, "bruck4", 1e-6, 1e-6},
    {Collective::kAllToAll, "bruck", 1e-6, 1e-6},
    {Collective::kAllToAll, "bruck4", 1e-6, 1e-6},
    {Collective::kAllGather, "bidirectional_ring", 1e-6, 1e-6},
    {Collective::kReduceScatter, "ring", 1e-6, 1e-6},
    {Collective::kReduceScatter, "halving", 1e-6, 1e-6, true},
    {Collective::kReduceScatter, "bidirectional_ring", 1e-6, 0.2},
};

/// One second of latency, a byte a second, reductions four times as fast; work is free else.
constexpr FlatLink kLink{1, 1, 0.25, 0};

LinkModel sameLink() {
    LinkModel model;
    model.wireBytesPerSecond = 1;
    model.wireLatencySeconds = 1;
    model.messageSeconds = 0;
    model.meetSeconds = 0;
    model.nodeBytesPerSecond = 1e30;
    model.reduceBytesPerSecond = 8;  // a sum of two reads two bytes for one
    return model;
}

/// Every rank on a node of its own.
double simulatedSeconds(const Form& form, int ranks, std::uint64_t bytesEach, int segments = 1) {
    std::vector<int> nodeOf;
    for (int rank = 0; rank < ranks; ++rank) nodeOf.push_back(rank);
    const Layout layout = Layout::of(nodeOf);
    std::vector<Plan> plans;
    for (Rank me = 0; me < ranks; ++me) {
        Result<Plan> plan =
            makePlan(layout, {form.collective, me, 0, Mapping::kNone, std::string(form.algorithm)});
        if (!plan.ok()) return -1;
        plans.push_back(std::move(*plan));
    }
    PlanCall call = PlanCall::of(form.collective, DataType::kUint8,
                                 static_cast<std::uint64_t>(ranks) * bytesEach, ranks);
    call.segments = segments;
    call.window = segments;
    const Result<double> seconds = simulateSeconds(plans, layout, call, sameLink());
    return seconds.ok() ? *seconds : -1;
}

TEST(Catalogue, IsSimulatedAsItsClosedFormsSay) {
    constexpr int kBytesEach = 720720;  // every count of ranks up to 16 divides it
    for (const Form& form : kForms) {
        for (int ranks = 2; ranks <= 16; ++ranks) {
            if (form.isPowersOnly && (ranks & (ranks - 1)) != 0) continue;
            const double bytes = static_cast<double>(ranks) * kBytesEach;
            const auto cost = flatCost(form.collective, form.algorithm, ranks, bytes);
            ASSERT_TRUE(cost.has_value()) << form.algorithm;
            const double formed = cost->seconds(kLink);
            const double simulated = simulatedSeconds(form, ranks, kBytesEach);
            EXPECT_LE(simulated, formed * (1 + form.slower))
                << nameOf(form.collective) << " " << form.algorithm << " of " << ranks;
            EXPECT_GE(simulated, formed * (1 - form.quicker))
                << nameOf(form.collective) << " " << form.algorithm << " of " << ranks;
        }
    }
}

// 48 segments, all under way at once. A message that finds its receiver's card taken holds its
// sender's, so the rate may fall to that of one tree: twice the form at worst (a broadcast to 5
// ranks). Sums overlap the wire.
TEST(Catalogue, DoubleTreesOfManySegmentsApproachTheirClosedForm) {
    constexpr int kBytesEach = 720720;
    for (const Collective collective :
         {Collective::kAllReduce, Collective::kBroadcast, Collective::kReduce}) {
        for (int ranks = 4; ranks <= 16; ++ranks) {
            const auto cost =
                flatCost(collective, "double_tree", ranks, static_cast<double>(ranks) * kBytesEach);
            ASSERT_TRUE(cost.has_value());
            const Form form{collective, "double_tree", 1.02, 0.2};
            const double simulated = simulatedSeconds(form, ranks, kBytesEach, 48);
            EXPECT_LE(simulated, cost->seconds(kLink) * (1 + form.slower)) << ranks;
            EXPECT_GE(simulated, cost->seconds(kLink) * (1 - form.quicker)) << ranks;
        }
    }
}

}  // namespace
}  // namespace isthmus
