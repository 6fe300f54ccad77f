// Ranks that do alike: some of them stand for all.
#include "comm/cost/symmetry.hpp"

#include <gtest/gtest.h>

#include "comm/cost/closed_form.hpp"
#include "comm/cost/simulate.hpp"

namespace isthmus {
namespace {

/// Nodes of `ranksOfNode` in racks of `nodesOfRack`.
Layout regular(int ranks, int ranksOfNode, int nodesOfRack) {
    std::vector<int> nodeOf;
    for (int rank = 0; rank < ranks; ++rank) nodeOf.push_back(rank / ranksOfNode);
    Layout layout = Layout::of(nodeOf);
    layout.racks.emplace_back();
    for (int node = 0; node < ranks / ranksOfNode; ++node)
        layout.racks.back().push_back(node / nodesOfRack);
    return layout;
}

PlanRequest requestOf(Collective collective, std::string_view name) {
    const Algorithm* const entry = findAlgorithm(collective, name);
    return {collective, 0, 0, entry == nullptr ? Mapping::kNone : entry->mappings.front(),
            std::string(name)};
}

Result<StepGraph> graphOf(const Layout& layout, PlanRequest request, const Symmetry& symmetry) {
    StepGraph graph(layout.ranks(), symmetry);
    for (request.me = 0; request.me < graph.actors(); ++request.me) {
        const Result<Plan> plan = makePlan(layout, request);
        if (!plan.ok()) return plan.status();
        graph.add(*plan);
    }
    ISTHMUS_TRY(graph.connect());
    return graph;
}

/// One second of latency, a byte a second, reductions four times as fast; work is free else.
LinkModel slowWire() {
    LinkModel model;
    model.wireBytesPerSecond = 1;
    model.wireLatencySeconds = 1;
    model.messageSeconds = 0;
    model.meetSeconds = 0;
    model.nodeBytesPerSecond = 1e30;
    model.reduceBytesPerSecond = 8;
    return model;
}

PlanCall bytesCall(std::int64_t elements, int segments = 1, int window = 1) {
    return {DataType::kUint8, elements, segments, window};
}

TEST(Symmetry, MovesUnitsDigitByDigit) {
    const Symmetry turned{2, {4}};
    EXPECT_EQ(turned.standIn(7), 1);
    EXPECT_EQ(turned.seenFrom(1, 6), 3);  // unit 0 lies one unit after unit 3, of four
    EXPECT_EQ(turned.moved(7, 2), 3);
    const Symmetry flipped{1, {2, 2}};
    EXPECT_EQ(flipped.seenFrom(1, 3), 2);  // 01 and 11 differ in the upper bit
    EXPECT_EQ(flipped.moved(1, 3), 2);
    const Symmetry none;
    EXPECT_EQ(none.seenFrom(5, 3), 5);
    EXPECT_EQ(none.standIn(5), 5);
}

// 4096 ranks, one of which is simulated: 8190 rounds of 1 + 100 s, 4095 sums of 25 s.
TEST(Symmetry, LetsOneRankOfARingStandForAll) {
    constexpr int kRanks = 4096;
    std::vector<int> nodeOf;
    for (int rank = 0; rank < kRanks; ++rank) nodeOf.push_back(rank);
    const Layout layout = Layout::of(nodeOf);
    const PlanRequest request = requestOf(Collective::kAllReduce, "ring");
    const Result<Symmetry> symmetry = symmetryOf(layout, request, 1);
    ASSERT_TRUE(symmetry.ok() && symmetry->isFolded());
    const Result<StepGraph> graph = graphOf(layout, request, *symmetry);
    ASSERT_TRUE(graph.ok()) << graph.status().what();
    EXPECT_EQ(graph->actors(), 1);
    const Result<double> seconds =
        Simulation(*graph, layout, slowWire()).run(bytesCall(100 * kRanks));
    ASSERT_TRUE(seconds.ok()) << seconds.status().what();
    EXPECT_NEAR(*seconds, 8190.0 * 101 + 4095.0 * 25, 1e-3);
}

struct Folded {
    Collective collective;
    const char* algorithm;
};

const Folded kFolded[] = {
    {Collective::kAllReduce, "ring"},
    {Collective::kAllReduce, "exchange"},
    {Collective::kAllReduce, "doubling"},
    {Collective::kAllReduce, "halving"},
    {Collective::kAllReduce, "butterfly"},
    {Collective::kAllReduce, "two_level_ring"},
    {Collective::kAllReduce, "two_level_exchange"},
    {Collective::kAllReduce, "two_level_halving"},
    {Collective::kAllReduce, "two_level_butterfly"},
    {Collective::kAllReduce, "three_level_exchange"},
    {Collective::kAllReduce, "three_level_ring"},
    {Collective::kAllGather, "bruck4"},
    {Collective::kAllGather, "butterfly"},
    {Collective::kAllGather, "two_level_exchange"},
    {Collective::kReduceScatter, "two_level_ring"},
    {Collective::kAllToAll, "pairwise"},
    {Collective::kAllToAll, "bruck"},
    {Collective::kAllToAll, "two_level_pairwise"},
    {Collective::kAllToAll, "two_level_node_first"},
    {Collective::kAllToAll, "two_level_rail_first"},
    {Collective::kAllToAll, "rack_first"},
};

/// Seconds of all ranks and of those that stand for all, with narrow racks and three segments.
std::pair<double, double> bothOf(const Folded& folded, const Layout& layout, int unitRanks,
                                 const LinkModel& model) {
    const PlanRequest request = requestOf(folded.collective, folded.algorithm);
    const Result<Symmetry> symmetry = symmetryOf(layout, request, unitRanks);
    if (!symmetry.ok() || !symmetry->isFolded()) return {-1, -2};
    const Result<StepGraph> all = graphOf(layout, request, {});
    const Result<StepGraph> few = graphOf(layout, request, *symmetry);
    if (!all.ok() || !few.ok()) return {-3, -4};
    const PlanCall call = bytesCall(3 * 720720, 3, 2);
    const Result<double> ofAll = Simulation(*all, layout, model).run(call);
    const Result<double> ofFew = Simulation(*few, layout, model).run(call);
    return {ofAll.ok() ? *ofAll : -5, ofFew.ok() ? *ofFew : -6};
}

// Messages of several ranks of a node that are ready at once go in the order of these ranks on each
// node; those that stand for all have that order for their own node only: 3 % at most here.
TEST(Symmetry, ChangesNoTime) {
    LinkModel model = slowWire();
    model.rackBytesPerSecond = 1;
    for (const Folded& folded : kFolded) {
        for (const auto& [ranks, ranksOfNode] : {std::pair(32, 2), {32, 1}, {64, 4}}) {
            const Layout layout = regular(ranks, ranksOfNode, 4);
            const auto [all, few] = bothOf(folded, layout, 4 * ranksOfNode, model);
            EXPECT_NEAR(all / few, 1, 0.03) << nameOf(folded.collective) << " " << folded.algorithm
                                            << " of " << ranks << " in nodes of " << ranksOfNode;
        }
    }
}

TEST(Symmetry, IsNotClaimedOfTreesAndUnequalNodes) {
    const Layout layout = regular(32, 2, 4);
    for (const auto& [collective, algorithm] :
         {std::pair(Collective::kBroadcast, "chain"), {Collective::kAllReduce, "double_tree"}}) {
        const Result<Symmetry> symmetry = symmetryOf(layout, requestOf(collective, algorithm), 8);
        ASSERT_TRUE(symmetry.ok());
        EXPECT_FALSE(symmetry->isFolded()) << algorithm;
    }
    const Layout unequal = Layout::of({0, 0, 1, 2});
    const Result<Symmetry> none = symmetryOf(unequal, requestOf(Collective::kAllReduce, "ring"), 2);
    ASSERT_TRUE(none.ok());
    EXPECT_FALSE(none->isFolded());
}

// A rank's plan moved by one unit would send where nobody receives.
TEST(Symmetry, ThatPlansDoNotHaveIsFoundOut) {
    const Layout layout = regular(8, 1, 2);
    const PlanRequest request = requestOf(Collective::kAllReduce, "doubling");
    EXPECT_FALSE(graphOf(layout, request, {1, {8}}).ok());
    EXPECT_TRUE(graphOf(layout, request, {1, {2, 2, 2}}).ok());
}

}  // namespace
}  // namespace isthmus
