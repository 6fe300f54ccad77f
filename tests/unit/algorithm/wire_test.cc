#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "tests/unit/algorithm/plan_sets.hpp"
#include "tests/unit/algorithm/wire.hpp"

namespace isthmus {
namespace {

/// Calls `check(wire, layout, root)` for all layouts of several nodes, roots and choices.
template <typename Check>
void forAll(Collective collective, std::string_view name, Check check) {
    const Algorithm* entry = findAlgorithm(collective, name);
    ASSERT_NE(entry, nullptr);
    for (const Layout& layout : testLayouts()) {
        if (layout.nodes.size() < 2) continue;
        for (Rank root = 0; root < (hasRoot(collective) ? layout.ranks() : 1); ++root) {
            for (const Choice choice : choicesOf(*entry)) {
                SCOPED_TRACE(textOf(*entry, layout, root));
                const std::vector<Plan> plans = plansOf(*entry, layout, root, choice);
                ASSERT_FALSE(plans.empty());
                check(wireOf(plans, layout), layout, root);
            }
        }
    }
}

std::int64_t ranksOf(const Layout& layout, std::size_t node) {
    return static_cast<std::int64_t>(layout.nodes[node].size());
}

TEST(Wire, AllReduceMeetsTheBoundAndEachRankCarriesItsShare) {
    for (const std::string_view name :
         {"two_level_ring", "two_level_exchange", "two_level_bidirectional_ring"}) {
        forAll(Collective::kAllReduce, name, [](const Wire& wire, const Layout& layout, Rank) {
            const auto nodes = static_cast<std::int64_t>(layout.nodes.size());
            for (std::size_t node = 0; node < layout.nodes.size(); ++node) {
                // 2 S (N - 1) / N, whatever the node's size
                EXPECT_EQ(wire.leavesNode[node] * nodes, 2 * wire.blockElements * (nodes - 1));
                EXPECT_EQ(wire.entersNode[node] * nodes, 2 * wire.blockElements * (nodes - 1));
                for (const Rank rank : layout.nodes[node]) {
                    EXPECT_EQ(
                        wire.leavesRank[static_cast<std::size_t>(rank)] * ranksOf(layout, node),
                        wire.leavesNode[node]);
                }
            }
        });
    }
}

TEST(Wire, AllGatherBringsEachBlockOnceIntoEachNode) {
    for (const std::string_view name : {"two_level_ring", "two_level_exchange"}) {
        forAll(Collective::kAllGather, name, [&](const Wire& wire, const Layout& layout, Rank) {
            const auto nodes = static_cast<std::int64_t>(layout.nodes.size());
            for (std::size_t node = 0; node < layout.nodes.size(); ++node) {
                EXPECT_EQ(wire.entersNode[node], layout.ranks() - ranksOf(layout, node));
                const std::size_t next = (node + 1) % layout.nodes.size();
                EXPECT_EQ(wire.leavesNode[node], name == "two_level_ring"
                                                     ? layout.ranks() - ranksOf(layout, next)
                                                     : (nodes - 1) * ranksOf(layout, node));
            }
        });
    }
}

TEST(Wire, ReduceScatterSendsOneSumOfEachBlockOutOfEachNode) {
    for (const std::string_view name : {"two_level_ring", "two_level_exchange"}) {
        forAll(Collective::kReduceScatter, name, [&](const Wire& wire, const Layout& layout, Rank) {
            for (std::size_t node = 0; node < layout.nodes.size(); ++node) {
                const std::int64_t blocks = layout.ranks() - ranksOf(layout, node);
                EXPECT_EQ(wire.leavesNode[node], blocks);
                for (const Rank rank : layout.nodes[node]) {  // dealt evenly
                    const std::int64_t least = blocks / ranksOf(layout, node);
                    const std::int64_t mine = wire.leavesRank[static_cast<std::size_t>(rank)];
                    EXPECT_GE(mine, least);
                    EXPECT_LE(mine, least + 1);
                }
            }
        });
    }
}

TEST(Wire, AllToAllSendsEachPairOnce) {
    for (const std::string_view name : {"two_level_pairwise", "two_level_pairwise_copied",
                                        "two_level_node_first", "two_level_rail_first"}) {
        forAll(Collective::kAllToAll, name, [](const Wire& wire, const Layout& layout, Rank) {
            for (std::size_t node = 0; node < layout.nodes.size(); ++node) {
                const std::int64_t mine = ranksOf(layout, node);
                EXPECT_EQ(wire.leavesNode[node], mine * (layout.ranks() - mine));
                EXPECT_EQ(wire.entersNode[node], mine * (layout.ranks() - mine));
            }
        });
    }
}

TEST(Wire, BroadcastAndReduceCrossEachCardOnce) {
    for (const Collective collective : {Collective::kBroadcast, Collective::kReduce}) {
        const bool isBroadcast = collective == Collective::kBroadcast;
        for (const std::string_view name : {"two_level_chain", "two_level_double_tree"}) {
            forAll(collective, name, [&](const Wire& wire, const Layout& layout, Rank root) {
                const auto home = static_cast<std::size_t>(layout.nodeOf(root));
                const auto& in = isBroadcast ? wire.entersNode : wire.leavesNode;
                const auto& out = isBroadcast ? wire.leavesNode : wire.entersNode;
                for (std::size_t node = 0; node < layout.nodes.size(); ++node) {
                    EXPECT_EQ(in[node], node == home ? 0 : wire.blockElements);
                    EXPECT_LE(out[node], wire.blockElements);
                }
                EXPECT_EQ(out[home], wire.blockElements);
            });
        }
    }
}

TEST(Wire, GatherAndScatterMoveEachOutsideBlockOnce) {
    for (const Collective collective : {Collective::kGather, Collective::kScatter}) {
        forAll(
            collective, "two_level_linear", [&](const Wire& wire, const Layout& layout, Rank root) {
                const auto home = static_cast<std::size_t>(layout.nodeOf(root));
                const bool isGather = collective == Collective::kGather;
                const auto& at = isGather ? wire.entersNode : wire.leavesNode;
                EXPECT_EQ(at[home], layout.ranks() - ranksOf(layout, home));
                const auto& other = isGather ? wire.leavesNode : wire.entersNode;
                EXPECT_EQ(std::accumulate(other.begin(), other.end(), std::int64_t{0}), at[home]);
            });
    }
}

/// Elements into and out of a node; -1: more than asked for may pass.
struct Least {
    std::int64_t in = -1;
    std::int64_t out = -1;
};

Least leastOf(Collective collective, const Wire& wire, const Layout& layout, std::size_t node,
              Rank root) {
    const auto here = ranksOf(layout, node);
    const auto there = layout.ranks() - here;
    const bool isHome = static_cast<int>(node) == layout.nodeOf(root);
    switch (collective) {
    case Collective::kAllGather:
        return {.in = there};
    case Collective::kReduceScatter:
        return {.out = there};
    case Collective::kAllToAll:
        return {.in = here * there, .out = here * there};
    case Collective::kBroadcast:
        return {.in = isHome ? 0 : wire.blockElements};
    case Collective::kReduce:
        return {.out = isHome ? 0 : wire.blockElements};
    default:
        return {};
    }
}

TEST(Wire, LeadersAloneSendAndNoMoreThanTheBound) {
    for (const Collective collective :
         {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter,
          Collective::kAllToAll, Collective::kBroadcast, Collective::kReduce}) {
        forAll(collective, "two_level_leaders",
               [&](const Wire& wire, const Layout& layout, Rank root) {
                   for (std::size_t node = 0; node < layout.nodes.size(); ++node) {
                       const Least least = leastOf(collective, wire, layout, node, root);
                       EXPECT_THAT(least.in, testing::AnyOf(-1, wire.entersNode[node]));
                       EXPECT_THAT(least.out, testing::AnyOf(-1, wire.leavesNode[node]));
                       int senders = 0;
                       for (const Rank rank : layout.nodes[node]) {
                           senders += wire.leavesRank[static_cast<std::size_t>(rank)] > 0 ? 1 : 0;
                       }
                       EXPECT_LE(senders, 1);
                   }
               });
    }
    // Over 2 to 4 nodes doubling takes the operand in at most twice.
    forAll(Collective::kAllReduce, "two_level_leaders", [](const Wire& wire, const Layout&, Rank) {
        for (const std::int64_t in : wire.entersNode) EXPECT_LE(in, 2 * wire.blockElements);
    });
}

TEST(Wire, BarrierSendsLogarithmicallyManySignalsFromEachNode) {
    forAll(Collective::kBarrier, "two_level_dissemination",
           [](const Wire& wire, const Layout& layout, Rank) {
               const int rounds = layout.nodes.size() > 2 ? 2 : 1;  // layouts of 2, 3 and 4 nodes
               for (const int signals : wire.signals) EXPECT_EQ(signals, rounds);
           });
}

TEST(Wire, FlatRingCrossesEachCardOnceEachWayWhateverTheRankOrder) {
    forAll(Collective::kAllReduce, "ring", [](const Wire& wire, const Layout& layout, Rank) {
        for (const std::int64_t elements : wire.leavesNode) {
            EXPECT_EQ(elements * layout.ranks(), 2 * wire.blockElements * (layout.ranks() - 1));
        }
    });
}

// Its large halves stay in the node: a card carries 2 S (N - 1) / N, what a flat ring carries more.
TEST(Wire, HalvingMeetsTheBoundOverEqualNodesOfPowersOfTwo) {
    for (const auto& [nodes, ranks] : {std::pair(2, 2), {2, 8}, {4, 4}, {8, 2}}) {
        const Layout layout = equalNodes(nodes, ranks);
        const Wire flat = wireOfEntry(Collective::kAllReduce, "halving", layout);
        const Wire rails = wireOfEntry(Collective::kAllReduce, "two_level_halving", layout);
        const Wire blocks = wireOfEntry(Collective::kReduceScatter, "halving", layout);
        for (std::size_t node = 0; node < layout.nodes.size(); ++node) {
            EXPECT_EQ(flat.leavesNode[node] * nodes, 2 * flat.blockElements * (nodes - 1));
            EXPECT_EQ(rails.leavesNode[node] * nodes, 2 * rails.blockElements * (nodes - 1));
            EXPECT_EQ(blocks.leavesNode[node], (nodes - 1) * ranks * blocks.blockElements);
        }
    }
}

// Of N nodes one that owns w of S sends S - w to other owners and (N - 1) w back.
TEST(Wire, OwnersLoadEachCardByItsShare) {
    const Algorithm* entry = findAlgorithm(Collective::kAllReduce, "two_level_owners");
    ASSERT_NE(entry, nullptr);
    for (const auto& [ranksOfNode, shares] :
         {std::pair(1, std::vector<int>{1, 1, 1, 0}), {2, {4, 3, 2, 1}}, {3, {1, 5}}}) {
        const int nodes = static_cast<int>(shares.size());
        Layout layout = equalNodes(nodes, ranksOfNode);
        layout.shares = shares;
        const int units = std::accumulate(shares.begin(), shares.end(), 0);
        const Wire wire = wireOf(plansOf(*entry, layout, 0, Choice::kDirect), layout);
        for (std::size_t node = 0; node < shares.size(); ++node) {
            const std::int64_t carried = units + (nodes - 2) * shares[node];
            EXPECT_EQ(wire.leavesNode[node] * units, carried * wire.blockElements);
            EXPECT_EQ(wire.entersNode[node] * units, carried * wire.blockElements);
        }
    }
}

// Both ways cross each card as often as one way: blocks go half as far in each direction.
TEST(Wire, BidirectionalRingCarriesWhatARingCarries) {
    for (int ranks = 2; ranks <= 9; ++ranks) {
        const Layout alone = equalNodes(ranks, 1);
        for (const Collective collective :
             {Collective::kAllGather, Collective::kReduceScatter, Collective::kAllReduce}) {
            const bool isWhole = collective == Collective::kAllReduce;
            const Wire wire = wireOfEntry(collective, "bidirectional_ring", alone);
            for (const std::int64_t elements : wire.leavesRank) {
                EXPECT_EQ(elements, isWhole ? 2 * (wire.blockElements - wire.blockElements / ranks)
                                            : (ranks - 1) * wire.blockElements);
            }
        }
    }
}

// Half up and twice half down where a rank has children, half up where it has none.
TEST(Wire, DoubleTreesLoadEveryRankWithTwoPayloadsAtMost) {
    for (int ranks = 2; ranks <= 17; ++ranks) {
        const Wire wire = wireOfEntry(Collective::kAllReduce, "double_tree", equalNodes(ranks, 1));
        std::int64_t total = 0;
        for (const std::int64_t elements : wire.leavesRank) {
            EXPECT_LE(elements, 2 * wire.blockElements) << ranks;
            total += elements;
        }
        EXPECT_EQ(total, 2 * (ranks - 1) * wire.blockElements);
    }
}

/// Messages from each node to each other one.
std::vector<std::vector<int>> messagesBetween(const std::vector<Plan>& plans,
                                              const Layout& layout) {
    const std::size_t nodes = layout.nodes.size();
    std::vector<std::vector<int>> messages(nodes, std::vector<int>(nodes, 0));
    for (const Plan& plan : plans) {
        for (const Step& step : plan.steps) {
            if (step.verb != Verb::kSend) continue;
            ++messages[static_cast<std::size_t>(layout.nodeOf(plan.me))]
                      [static_cast<std::size_t>(layout.nodeOf(step.peers[0]))];
        }
    }
    return messages;
}

// One for each rank at one of the two ends, instead of one for each pair; none inside a node.
TEST(Wire, TwoHopAllToAllSendsAMessageForEachRankOfANode) {
    for (const bool isNodeFirst : {true, false}) {
        const Algorithm* entry = findAlgorithm(
            Collective::kAllToAll, isNodeFirst ? "two_level_node_first" : "two_level_rail_first");
        ASSERT_NE(entry, nullptr);
        for (const Layout& layout : testLayouts()) {
            if (layout.nodes.size() < 2) continue;
            const auto messages =
                messagesBetween(plansOf(*entry, layout, 0, Choice::kDirect), layout);
            for (std::size_t from = 0; from < messages.size(); ++from) {
                for (std::size_t to = 0; to < messages.size(); ++to) {
                    const auto ranks = layout.nodes[isNodeFirst ? to : from].size();
                    EXPECT_EQ(messages[from][to], from == to ? 0 : static_cast<int>(ranks));
                }
            }
        }
    }
}

// Rounds of radix 4 over 16 ranks: 3 messages in each of 2, to ranks 1 2 3 and 4 8 12 away.
TEST(Wire, BruckToBase4SendsThreeMessagesARound) {
    const Layout layout = equalNodes(16, 1);
    for (const Collective collective : {Collective::kAllGather, Collective::kAllToAll}) {
        const Algorithm* entry = findAlgorithm(collective, "bruck4");
        ASSERT_NE(entry, nullptr);
        const auto messages = messagesBetween(plansOf(*entry, layout, 0, Choice::kDirect), layout);
        for (const int away : {1, 2, 3, 4, 8, 12}) {
            const auto to = collective == Collective::kAllGather ? 16 - away : away;
            EXPECT_EQ(messages[0][static_cast<std::size_t>(to)], 1) << away;
        }
        EXPECT_EQ(std::accumulate(messages[0].begin(), messages[0].end(), 0), 6);
    }
}

// One way up the nodes, then round from the last one: 2 S at most, S from the last two.
TEST(Wire, OrderedAllReduceOverNeighboursCrossesEachCardTwiceAtMost) {
    for (const int nodes : {2, 3, 4}) {
        const Wire wire =
            wireOfEntry(Collective::kAllReduce, "two_level_ordered", equalNodes(nodes, 4));
        for (int node = 0; node < nodes; ++node) {
            const auto at = static_cast<std::size_t>(node);
            EXPECT_EQ(wire.leavesNode[at], (node < nodes - 2 ? 2 : 1) * wire.blockElements);
            EXPECT_EQ(wire.entersNode[at],
                      (node == 0 || node == nodes - 1 ? 1 : 2) * wire.blockElements);
        }
    }
}

/// Messages of a plan in program order: verb, peer, channel, elements.
std::vector<std::vector<std::int64_t>> messagesOf(const Plan& plan) {
    std::vector<std::vector<std::int64_t>> messages;
    for (const Step& step : plan.steps) {
        if (step.verb != Verb::kSend && step.verb != Verb::kRecv) continue;
        const Slice& slice = step.verb == Verb::kSend ? step.sources[0] : step.target;
        messages.push_back({static_cast<int>(step.verb), step.peers[0], step.channel,
                            elementsOf(plan, slice, divisibleBlock(plan))});
    }
    return messages;
}

TEST(TwoLevel, DirectAndStagedPlansSendTheSameMessages) {
    int compared = 0;
    for (const Algorithm& entry : catalogue()) {
        if (!entry.usesLevels) continue;
        for (const Layout& layout : testLayouts()) {
            if (!entry.fits(layout)) continue;
            const std::vector<Plan> direct =
                plansOf(entry, layout, 1 % layout.ranks(), Choice::kDirect);
            const std::vector<Plan> staged =
                plansOf(entry, layout, 1 % layout.ranks(), Choice::kStaged);
            ASSERT_EQ(direct.size(), staged.size());
            for (std::size_t rank = 0; rank < direct.size(); ++rank) {
                EXPECT_EQ(messagesOf(direct[rank]), messagesOf(staged[rank]))
                    << textOf(entry, layout, 1) << ", rank " << rank;
                ++compared;
            }
        }
    }
    EXPECT_GT(compared, 500);
}

}  // namespace
}  // namespace isthmus
