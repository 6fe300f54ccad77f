#include "comm/algorithm/levels.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/algorithm/plan_sets.hpp"
#include "tests/unit/algorithm/wire.hpp"

namespace isthmus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Nodes of `each` ranks in racks of `nodesOfRack` nodes.
Layout inRacks(const std::vector<int>& nodesOfRack, int each) {
    std::vector<int> racks;
    for (std::size_t rack = 0; rack < nodesOfRack.size(); ++rack) {
        racks.insert(racks.end(), static_cast<std::size_t>(nodesOfRack[rack]),
                     static_cast<int>(rack));
    }
    Layout layout = equalNodes(static_cast<int>(racks.size()), each);
    layout.racks = {racks};
    return layout;
}

/// What crosses the links of racks, by rack.
Wire betweenRacks(const Algorithm& entry, const Layout& layout, Rank root, Choice choice) {
    return wireOf(plansOf(entry, layout, root, choice), layout.byRack());
}

std::vector<Layout> rackedLayouts() {
    std::vector<Layout> layouts = {inRacks({2, 2}, 2), inRacks({4, 4}, 1), inRacks({3, 1, 2}, 2),
                                   inRacks({2, 2, 2, 2, 2}, 1)};
    Layout unequal = Layout::of({0, 0, 0, 1, 1, 2, 3, 3, 3});  // nodes of 3, 2, 1 and 3 ranks
    unequal.racks = {{0, 1, 0, 1}};
    layouts.push_back(unequal);
    Layout rows = equalNodes(8, 2);
    rows.racks = {{0, 0, 1, 1, 2, 2, 3, 3}, {0, 0, 0, 0, 1, 1, 1, 1}};
    layouts.push_back(rows);
    return layouts;
}

TEST(Units, GroupNodesFromTheOutermostLevelIn) {
    Layout layout = equalNodes(6, 1);
    layout.racks = {{0, 1, 0, 2, 2, 1}, {0, 0, 0, 1, 1, 0}};
    const Unit whole = Unit::of(layout);
    EXPECT_EQ(whole.height(), 3);
    ASSERT_EQ(whole.parts.size(), 2u);
    EXPECT_THAT(whole.parts[0].nodes, ElementsAre(0, 1, 2, 5));
    EXPECT_THAT(whole.parts[0].parts[1].nodes, ElementsAre(1, 5));
    EXPECT_EQ(whole.parts[1].height(), 1);  // a row of one rack is the rack
    EXPECT_THAT(nodesFrom(layout, 5), ElementsAre(5, 1, 0, 2, 3, 4));
    layout.racks.clear();
    EXPECT_EQ(Unit::of(layout).height(), 1);
    EXPECT_THAT(nodesFrom(layout, 4), ElementsAre(4, 5, 0, 1, 2, 3));
    EXPECT_EQ(layout.byRack(), layout);
}

// Two nodes in one rack and one in another: halves go round in the first, all meets the third.
TEST(Levels, CutAnOperandForEveryLevel) {
    const Layout layout = inRacks({2, 1}, 1);
    const Levels levels(layout);
    EXPECT_EQ(levels.chunking().cuts,
              (std::vector<Fraction>{{0, 1}, {1, 4}, {1, 2}, {3, 4}, {1, 1}}));
    const auto rails = levels.railsOf(0);
    ASSERT_EQ(rails.size(), 2u);
    ASSERT_EQ(rails[0].size(), 1u);
    EXPECT_THAT(rails[0][0].ranks, ElementsAre(0, 1));
    EXPECT_THAT(rails[0][0].pieces, ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
    ASSERT_EQ(rails[1].size(), 1u);
    EXPECT_THAT(rails[1][0].ranks, ElementsAre(0, 2));
    EXPECT_THAT(rails[1][0].pieces, ElementsAre(ElementsAre(0), ElementsAre(1)));
    EXPECT_EQ(levels.railsOf(2).size(), 1u);
    EXPECT_EQ(levels.railsOf(2)[0].size(), 2u);
}

TEST(BlockWays, LeadOverOneGateOfEachUnit) {
    const Layout layout = inRacks({2, 3}, 1);
    const BlockWays ways(layout);
    EXPECT_EQ(ways.levels(), 2);
    EXPECT_EQ(ways.towardsHome(1, 0, layout.nodeOf(0)).node, 0);
    EXPECT_EQ(ways.towardsHome(1, 0, layout.nodeOf(0)).level, 0);
    // Blocks 0 and 1 are dealt to nodes 2 and 3 of the second rack.
    EXPECT_EQ(ways.towardsHome(2, 0, layout.nodeOf(0)).node, 0);
    EXPECT_EQ(ways.towardsHome(2, 0, layout.nodeOf(0)).level, 1);
    EXPECT_EQ(ways.towardsHome(4, 0, layout.nodeOf(0)).node, 2);
    EXPECT_EQ(ways.towardsHome(4, 0, layout.nodeOf(0)).level, 0);
    EXPECT_EQ(ways.towardsHome(4, 1, layout.nodeOf(1)).node, 3);
    EXPECT_EQ(ways.towardsHome(3, 1, layout.nodeOf(1)).node, 1);
}

// 2 S (R - 1) / R over the link of each of R racks, whatever nodes and ranks are in them.
TEST(ThreeLevel, AllReduceCrossesRacksAsLittleAsCanBe) {
    for (const char* name : {"three_level_exchange", "three_level_ring"}) {
        const Algorithm* entry = findAlgorithm(Collective::kAllReduce, name);
        ASSERT_NE(entry, nullptr);
        for (const Layout& layout : rackedLayouts()) {
            for (const Choice choice : choicesOf(*entry)) {
                const Wire wire = betweenRacks(*entry, layout, 0, choice);
                const auto racks = static_cast<std::int64_t>(wire.leavesNode.size());
                for (std::size_t rack = 0; rack < wire.leavesNode.size(); ++rack) {
                    const std::int64_t bound = 2 * wire.blockElements * (racks - 1);
                    EXPECT_EQ(wire.leavesNode[rack] * racks, bound) << textOf(*entry, layout, 0);
                    EXPECT_EQ(wire.entersNode[rack] * racks, bound);
                }
            }
        }
    }
}

// Over equal racks of equal nodes a card carries what two levels let it carry: 2 S (N - 1) / N.
TEST(ThreeLevel, AllReduceLoadsCardsAsTwoLevelsDo) {
    for (const auto& [racks, each] :
         {std::pair(std::vector<int>{2, 2}, 2), {{4, 4}, 1}, {{3, 3, 3}, 2}}) {
        const Layout layout = inRacks(racks, each);
        const Wire wire = wireOfEntry(Collective::kAllReduce, "three_level_exchange", layout);
        const auto nodes = static_cast<std::int64_t>(layout.nodes.size());
        for (const std::int64_t elements : wire.leavesNode) {
            EXPECT_EQ(elements * nodes, 2 * wire.blockElements * (nodes - 1));
        }
    }
}

TEST(ThreeLevel, BlocksEnterAndSumsLeaveEachRackOnceAndEachNodeOnce) {
    for (const bool isGather : {true, false}) {
        const Algorithm* entry = findAlgorithm(
            isGather ? Collective::kAllGather : Collective::kReduceScatter, "three_level_exchange");
        ASSERT_NE(entry, nullptr);
        for (const Layout& layout : rackedLayouts()) {
            for (const Layout& view : {layout, layout.byRack()}) {
                const Wire wire = wireOf(plansOf(*entry, layout, 0, Choice::kDirect), view);
                const auto& once = isGather ? wire.entersNode : wire.leavesNode;
                for (std::size_t unit = 0; unit < once.size(); ++unit) {
                    EXPECT_EQ(once[unit],
                              layout.ranks() - static_cast<int>(view.nodes[unit].size()))
                        << textOf(*entry, layout, 0);
                }
            }
        }
    }
}

// A chain of nodes enters every rack but the root's once, and comes back to none.
TEST(ThreeLevel, BroadcastAndReduceGoFromRackToRack) {
    for (const Collective collective : {Collective::kBroadcast, Collective::kReduce}) {
        for (const char* name : {"two_level_chain", "chain"}) {
            const Algorithm* entry = findAlgorithm(collective, name);
            ASSERT_NE(entry, nullptr);
            for (const Layout& layout : rackedLayouts()) {
                for (Rank root = 0; root < layout.ranks(); ++root) {
                    const Wire wire = betweenRacks(*entry, layout, root, Choice::kDirect);
                    const bool isBroadcast = collective == Collective::kBroadcast;
                    const auto& in = isBroadcast ? wire.entersNode : wire.leavesNode;
                    const auto& out = isBroadcast ? wire.leavesNode : wire.entersNode;
                    const auto home = static_cast<std::size_t>(layout.byRack().nodeOf(root));
                    for (std::size_t rack = 0; rack < in.size(); ++rack) {
                        EXPECT_EQ(in[rack], rack == home ? 0 : wire.blockElements);
                        EXPECT_LE(out[rack], wire.blockElements);
                    }
                }
            }
        }
    }
}

// The bytes of any all-to-all, in one message from each rank to each other rack.
TEST(ThreeLevel, AllToAllSendsOneMessageFromEachRankToEachOtherRack) {
    const Algorithm* entry = findAlgorithm(Collective::kAllToAll, "rack_first");
    ASSERT_NE(entry, nullptr);
    for (const Layout& layout : rackedLayouts()) {
        const Layout racks = layout.byRack();
        const auto plans = plansOf(*entry, layout, 0, Choice::kDirect);
        const Wire wire = wireOf(plans, racks);
        for (std::size_t rack = 0; rack < racks.nodes.size(); ++rack) {
            const auto ranks = static_cast<std::int64_t>(racks.nodes[rack].size());
            EXPECT_EQ(wire.leavesNode[rack], ranks * (layout.ranks() - ranks));
            EXPECT_EQ(wire.entersNode[rack], ranks * (layout.ranks() - ranks));
        }
        for (const Plan& plan : plans) {
            int messages = 0;
            for (const Step& step : plan.steps) {
                const bool isOut = step.verb == Verb::kSend &&
                                   racks.nodeOf(step.peers[0]) != racks.nodeOf(plan.me);
                messages += isOut ? 1 : 0;
            }
            EXPECT_EQ(messages, static_cast<int>(racks.nodes.size()) - 1);
        }
    }
}

TEST(Layout, RefusesRacksThatAreNone) {
    Layout layout = equalNodes(4, 1);
    const PlanRequest request{Collective::kAllReduce, 0, 0, Mapping::kAll, "three_level_ring"};
    EXPECT_THAT(makePlan(layout, request).status().what(), HasSubstr("does not fit 4 nodes"));
    layout.racks = {{0, 0, 1}};
    EXPECT_THAT(makePlan(layout, request).status().what(), HasSubstr("one for each node"));
    layout.racks = {{0, 0, 1, 1}, {0, 1, 1, 1}};  // the first rack in two rows
    EXPECT_THAT(makePlan(layout, request).status().what(), HasSubstr("each in one row"));
    layout.racks = {{0, 0, 1, 1}};
    EXPECT_TRUE(makePlan(layout, request).ok());
}

}  // namespace
}  // namespace isthmus
