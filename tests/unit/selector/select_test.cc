#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "tests/unit/selector/choices.hpp"

namespace isthmus {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kKilobyte = 1 << 10;
constexpr std::uint64_t kMegabyte = 1 << 20;

TEST(Select, CutsLargeCallsIntoSegments) {
    const Selection large = chosen(Collective::kAllReduce, 64 * kMegabyte, equalNodes(2, 2));
    EXPECT_EQ(large.segments, 64);
    EXPECT_EQ(large.window, 3);
    EXPECT_EQ(chosen(Collective::kAllReduce, 4 * kMegabyte, equalNodes(2, 2)).segments, 4);
    EXPECT_EQ(chosen(Collective::kAllReduce, kMegabyte, equalNodes(2, 2)).segments, 4);
    EXPECT_EQ(chosen(Collective::kAllReduce, kMegabyte / 2, equalNodes(2, 2)).segments, 2);
    EXPECT_EQ(chosen(Collective::kAllReduce, kMegabyte / 2, equalNodes(2, 2)).window, 2);
    EXPECT_EQ(chosen(Collective::kAllReduce, kMegabyte / 4, equalNodes(2, 2)).segments, 1);
    EXPECT_EQ(chosen(Collective::kAllReduce, kMegabyte / 4, oneNode(4)).segments, 1);
    EXPECT_EQ(chosen(Collective::kAllReduce, kMegabyte + 1, oneNode(4)).segments, 5);
    EXPECT_EQ(chosen(Collective::kAllReduce, 3 * kMegabyte, oneNode(4)).segments, 8);
    const Selection near = chosen(Collective::kAllReduce, 64 * kMegabyte, oneNode(4));
    EXPECT_EQ(near.segments, 128);
    EXPECT_EQ(near.segmentsWhenMapped, 1);
    EXPECT_EQ(chosen(Collective::kBarrier, 0, equalNodes(2, 2)).segments, 1);
}

TEST(Select, OverNodesComposesLevels) {
    EXPECT_EQ(chosen(Collective::kAllReduce, 64 * kMegabyte, equalNodes(2, 2)).algorithm,
              "two_level_exchange");
    EXPECT_EQ(chosen(Collective::kAllReduce, 65536, equalNodes(2, 2)).algorithm,
              "two_level_doubling");
    EXPECT_EQ(chosen(Collective::kAllReduce, 64 * kMegabyte, equalNodes(8, 2)).algorithm,
              "two_level_ring");
    const auto smallOver = [](int nodes, std::uint64_t bytes) {
        return chosen(Collective::kAllReduce, bytes, equalNodes(nodes, 1)).algorithm;
    };
    EXPECT_EQ(smallOver(8, 16384), "two_level_doubling");
    EXPECT_EQ(smallOver(8, 16385), "two_level_exchange");
    EXPECT_EQ(smallOver(6, 64),
              "two_level_exchange");  // rounds to and from the odd nodes cost more
    for (int index = 0; index < kCollectives; ++index) {
        const Selection any = chosen(static_cast<Collective>(index), 123457, equalNodes(3, 2));
        EXPECT_THAT(any.algorithm, testing::StartsWith("two_level_"));
    }
}

TEST(Select, GoesByDigitsOverManyNodes) {
    const auto over = [](Collective collective, std::uint64_t bytes, int nodes) {
        return chosen(collective, bytes, equalNodes(nodes, 2)).algorithm;
    };
    EXPECT_EQ(over(Collective::kAllReduce, 64 * kMegabyte, 16), "two_level_butterfly");
    EXPECT_EQ(over(Collective::kAllReduce, 65536, 12), "two_level_butterfly");
    EXPECT_EQ(over(Collective::kAllReduce, 64 * kMegabyte, 11), "two_level_ring");  // one digit
    EXPECT_EQ(over(Collective::kAllGather, kMegabyte, 16), "butterfly");
    EXPECT_EQ(over(Collective::kReduceScatter, kMegabyte, 16), "butterfly");
    EXPECT_EQ(over(Collective::kBroadcast, 2 * kMegabyte, 16), "two_level_double_tree");
    EXPECT_EQ(over(Collective::kBroadcast, 64 * kMegabyte, 16), "two_level_chain");
    CallShape call;
    call.collective = Collective::kAllGather;
    call.bytes = kMegabyte;
    call.hasCounts = true;
    EXPECT_THAT(select(call, equalNodes(16, 2), {})->algorithm, testing::StartsWith("two_level_"));
}

// 256 ranks: 8 MiB are messages of 32 KiB.
TEST(Select, CutsAnAllToAllIntoMessagesThatAreWorthIt) {
    const auto passes = [](std::uint64_t bytes, int nodes) {
        return chosen(Collective::kAllToAll, bytes, equalNodes(nodes, 2)).segments;
    };
    EXPECT_EQ(passes(64 * kMegabyte, 128), 8);
    EXPECT_EQ(passes(kMegabyte, 128), 1);
    EXPECT_EQ(passes(64 * kMegabyte, 4), 64);
}

TEST(Select, SendsSmallBlocksOfAnAllToAllTogether) {
    const auto withBlocksOf = [](std::uint64_t bytes) {
        return chosen(Collective::kAllToAll, 8 * bytes, equalNodes(4, 2)).algorithm;
    };
    EXPECT_EQ(withBlocksOf(4097), "two_level_node_first");
    EXPECT_EQ(withBlocksOf(8192), "two_level_node_first");
    EXPECT_EQ(withBlocksOf(8193), "two_level_pairwise");
}

// collectives.md 2.1: nodes of 8, 1, 1, 1 would send 24 blocks by exchange, 10 by ring.
TEST(Select, RelaysBlocksWhenOneNodeIsLarge) {
    const Layout skewed = Layout::of({0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3});
    EXPECT_EQ(chosen(Collective::kAllGather, kMegabyte, skewed).algorithm, "two_level_ring");
    EXPECT_EQ(chosen(Collective::kAllGather, kMegabyte, equalNodes(4, 2)).algorithm,
              "two_level_exchange");
}

TEST(Select, DoesNotLookAtTheSizeOfAnAllToAllWithCounts) {
    CallShape small;
    small.collective = Collective::kAllToAll;
    small.hasCounts = true;
    small.bytes = 8;
    CallShape large = small;
    large.bytes = 64 * kMegabyte;
    for (const Layout& layout : {oneNode(4), equalNodes(2, 2)}) {
        EXPECT_EQ(*select(small, layout, {}), *select(large, layout, {}));
        EXPECT_EQ(select(large, layout, {})->segments, 1);
    }
}

TEST(Select, CutsAnAllToAllWithCountsByTheBlock) {
    CallShape call;
    call.collective = Collective::kAllToAll;
    call.hasCounts = true;
    const auto piece = [&](const Layout& layout, const SelectorOptions& options) {
        return select(call, layout, options)->pieceBytes;
    };
    EXPECT_EQ(piece(oneNode(2), {}), 256 * kKilobyte);
    EXPECT_EQ(piece(oneNode(4), {}), 128 * kKilobyte);
    EXPECT_EQ(piece(equalNodes(2, 4), {}), 128 * kKilobyte);
    EXPECT_EQ(piece(oneNode(64), {}), 32 * kKilobyte);  // few of 64 blocks may be all there is
    SelectorOptions small;
    small.segmentBytes = 1000;
    EXPECT_EQ(piece(oneNode(4), small), 1000U);
    EXPECT_EQ(select(call, oneNode(4), {})->window, SelectorOptions().window);
    call.hasCounts = false;
    EXPECT_EQ(piece(oneNode(4), {}), 0U);
}

// Its ranks know their own blocks, and inside a node where the others keep what is for them.
TEST(Select, SendsEachBlockOfAnAllToAllWithCountsAlone) {
    CallShape call;
    call.collective = Collective::kAllToAll;
    call.hasCounts = true;
    const std::tuple<Layout, std::string, std::string> cases[] = {
        {oneNode(4), "direct", "inline"},
        {equalNodes(2, 2), "two_level_pairwise", "two_level_node_first"},
        {equalNodes(4, 1), "two_level_pairwise", "bruck"}};
    for (const auto& [layout, fit, unfit] : cases) {
        EXPECT_EQ(select(call, layout, {})->algorithm, fit);
        SelectorOptions options;
        // The environment's wish is for calls that it fits.
        options.rules = *readAlgorithmRules(unfit);
        EXPECT_EQ(select(call, layout, options)->algorithm, fit);
        options.algorithm = "pairwise_copied";
        EXPECT_EQ(select(call, layout, options)->algorithm, "pairwise_copied");
        options.algorithm = unfit;
        const Result<Selection> refused = select(call, layout, options);
        ASSERT_FALSE(refused.ok());
        EXPECT_EQ(refused.status().code(), Status::Code::kInvalidArgument);
        EXPECT_THAT(refused.status().what(), HasSubstr("blocks of different sizes"));
        call.hasCounts = false;
        EXPECT_EQ(select(call, layout, options)->algorithm, unfit);
        call.hasCounts = true;
    }
}

TEST(Select, TakesWhatTheCallerAsksFor) {
    SelectorOptions options;
    options.algorithm = "ring";
    EXPECT_EQ(chosen(Collective::kAllReduce, 8, equalNodes(2, 2), options).algorithm, "ring");
    CallShape call;
    call.collective = Collective::kAllReduce;
    options.algorithm = "rong";
    const Result<Selection> unknown = select(call, equalNodes(2, 2), options);
    ASSERT_FALSE(unknown.ok());
    EXPECT_EQ(unknown.status().code(), Status::Code::kInvalidArgument);
    EXPECT_THAT(unknown.status().what(), HasSubstr("two_level_ring"));
    options.algorithm = "direct";
    EXPECT_FALSE(select(call, equalNodes(2, 2), options).ok());
}

TEST(Select, GivesSlowCardsLess) {
    Layout layout = equalNodes(3, 2);
    layout.shares = {32, 32, 0};
    EXPECT_EQ(chosen(Collective::kAllReduce, 64 * kMegabyte, layout).algorithm, "two_level_owners");
    EXPECT_EQ(chosen(Collective::kAllGather, 64 * kMegabyte, layout).algorithm,
              "two_level_exchange");
}

// Ranks that hold no data leave one choice: with the order of ranks another.
TEST(Select, HasRanksThatOnlyAddForAllReduces) {
    Layout layout = equalNodes(3, 2);
    layout.summing = {4, 5};
    EXPECT_EQ(chosen(Collective::kAllReduce, 8, layout).algorithm, "two_level_summing");
    EXPECT_EQ(chosen(Collective::kAllReduce, 64 * kMegabyte, layout).algorithm,
              "two_level_summing");
    EXPECT_EQ(chosen(Collective::kAllGather, 8, layout).algorithm, "two_level_leaders");
    CallShape call;
    call.collective = Collective::kAllReduce;
    call.bytes = 64 * kMegabyte;
    call.isInRankOrder = true;
    EXPECT_EQ(select(call, layout, {})->algorithm, "summing");
    Layout alone = oneNode(3);
    alone.summing = {1};
    const Selection inNode = chosen(Collective::kAllReduce, 8, alone);
    EXPECT_EQ(inNode.algorithm, "summing");
    EXPECT_THAT(reasonOf(inNode, call, alone, {}), HasSubstr("only add"));
}

TEST(Select, CrossesRacksAsLittleAsItMust) {
    Layout layout = equalNodes(4, 2);
    layout.racks = {{0, 0, 1, 1}};
    for (const Collective collective :
         {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter}) {
        EXPECT_EQ(chosen(collective, 64 * kMegabyte, layout).algorithm, "three_level_exchange");
        EXPECT_THAT(chosen(collective, 1024, layout).algorithm, testing::StartsWith("two_level_"));
    }
    EXPECT_EQ(chosen(Collective::kBroadcast, 64 * kMegabyte, layout).algorithm, "two_level_chain");
    EXPECT_EQ(chosen(Collective::kAllToAll, 64 * kMegabyte, layout).algorithm,
              "two_level_pairwise");
    Layout many = equalNodes(34, 1);
    many.racks.emplace_back();
    for (int node = 0; node < 34; ++node) many.racks.front().push_back(node / 2);
    EXPECT_EQ(chosen(Collective::kAllReduce, 64 * kMegabyte, many).algorithm, "three_level_ring");
    CallShape call;
    call.collective = Collective::kAllReduce;
    call.bytes = 64 * kMegabyte;
    const auto selection = select(call, layout, {});
    EXPECT_THAT(reasonOf(*selection, call, layout, {}), HasSubstr("between racks"));
    call.isInRankOrder = true;
    EXPECT_EQ(select(call, layout, {})->algorithm, "two_level_ordered");
}

TEST(SelectorOptions, ReadsTheGrammarOfItsKnobs) {
    const std::span<const Knob> tables[] = {kSelectorKnobs};
    Options knobs = Options::defaults(tables);
    ASSERT_TRUE(SelectorOptions::from(knobs).ok());
    EXPECT_EQ(SelectorOptions::from(knobs)->segmentBytes, 1 << 20);
    ASSERT_TRUE(knobs.set("ISTHMUS_ALGORITHM", "all_reduce=ring,alltoall=pairwise", "test").ok());
    ASSERT_TRUE(knobs.set("ISTHMUS_SEGMENT", "256K", "test").ok());
    const Result<SelectorOptions> options = SelectorOptions::from(knobs);
    ASSERT_TRUE(options.ok()) << options.status().what();
    EXPECT_EQ(options->segmentBytes, 262144);
    EXPECT_EQ(chosen(Collective::kAllReduce, 8, equalNodes(2, 2), *options).algorithm, "ring");
    EXPECT_EQ(chosen(Collective::kAllToAll, 8, equalNodes(2, 2), *options).algorithm, "pairwise");
    EXPECT_EQ(chosen(Collective::kBroadcast, 8, equalNodes(2, 2), *options).algorithm,
              "two_level_leaders");
}

TEST(SelectorOptions, PassesUnderWayAreNoMoreThanTheEngineHolds) {
    const std::span<const Knob> tables[] = {kSelectorKnobs};
    Options knobs = Options::defaults(tables);
    ASSERT_TRUE(knobs.set("ISTHMUS_WINDOW", "16", "test").ok());
    EXPECT_EQ(SelectorOptions::from(knobs)->window, 8);
    ASSERT_TRUE(knobs.set("ISTHMUS_WINDOW", "0", "test").ok());
    EXPECT_EQ(SelectorOptions::from(knobs)->window, 1);
    SelectorOptions options;
    options.window = 12;  // twice the wish, as over several cards
    const Layout layout = equalNodes(2, 2);
    EXPECT_EQ(chosen(Collective::kAllReduce, 64 * kMegabyte, layout, options).window, 8);
}

TEST(Select, TakesTheFirstRuleThatFitsTheCall) {
    SelectorOptions options;
    options.rules = *readAlgorithmRules(
        "all_reduce:0-64=direct,all_reduce:0-64=ring,all_reduce=two_level_ring");
    const auto nameAt = [&](std::uint64_t bytes) {
        return chosen(Collective::kAllReduce, bytes, equalNodes(2, 2), options).algorithm;
    };
    EXPECT_EQ(nameAt(64), "ring");  // direct is for one node
    EXPECT_EQ(nameAt(65), "two_level_ring");
    CallShape call;
    call.collective = Collective::kAllReduce;
    call.bytes = 64;
    const auto selection = select(call, equalNodes(2, 2), options);
    EXPECT_EQ(reasonOf(*selection, call, equalNodes(2, 2), options), "set by ISTHMUS_ALGORITHM");
}

// The ranks of such a call each know another size: a range of sizes must not tell them apart.
TEST(Select, MatchesNoRangeWithTheSizeOfAnAllToAllWithCounts) {
    SelectorOptions options;
    options.rules = *readAlgorithmRules("all_to_all:1-=pairwise_copied");
    CallShape call;
    call.collective = Collective::kAllToAll;
    call.hasCounts = true;
    for (const std::uint64_t bytes : {0, 1, 4096}) {
        call.bytes = bytes;
        EXPECT_EQ(select(call, equalNodes(2, 2), options)->algorithm, "two_level_pairwise")
            << bytes;
    }
}

TEST(SelectorOptions, NamesWhatIsKnown) {
    const std::span<const Knob> tables[] = {kSelectorKnobs};
    for (const auto& [text, known] :
         {std::pair("all_reduce=rong", "two_level_ring"), std::pair("rong", "bruck"),
          std::pair("al_reduce=ring", "reduce_scatter")}) {
        Options knobs = Options::defaults(tables);
        ASSERT_TRUE(knobs.set("ISTHMUS_ALGORITHM", text, "test").ok());
        const Result<SelectorOptions> options = SelectorOptions::from(knobs);
        ASSERT_FALSE(options.ok()) << text;
        EXPECT_EQ(options.status().code(), Status::Code::kConfiguration);
        EXPECT_THAT(options.status().what(), HasSubstr(known));
    }
}

TEST(CollectiveNamed, TakesOtherSpellings) {
    EXPECT_EQ(*collectiveNamed("alltoall"), Collective::kAllToAll);
    EXPECT_EQ(*collectiveNamed("reduce-scatter"), Collective::kReduceScatter);
    EXPECT_FALSE(collectiveNamed("all_gaze").ok());
}

}  // namespace
}  // namespace isthmus
