// What a plan's locations hold, and where and how long that is in memory.
#include <gtest/gtest.h>

#include <array>

#include "comm/engine/compiled_plan.hpp"
#include "comm/engine/extents.hpp"
#include "comm/plan/builder.hpp"

namespace isthmus::test {
namespace {

const Chunking kThirds{{{0, 1}, {1, 3}, {1, 1}}};  // a narrow chunk and a wide one

PlanBuilder builderFor(Collective collective, const std::vector<int>& nodeOfRank,
                       Mapping mapping = Mapping::kNone, Chunking chunking = kThirds) {
    return {collective, 0,      static_cast<int>(nodeOfRank.size()), 0, std::move(chunking),
            nodeOfRank, mapping};
}

CompiledPlan compile(PlanBuilder& builder, const std::vector<int>& positionInNode) {
    int nodeRanks = 0;
    for (const int position : positionInNode) nodeRanks += position >= 0 ? 1 : 0;
    auto plan = builder.finish();
    EXPECT_TRUE(plan.ok()) << plan.status().what();
    return CompiledPlan::of(std::move(*plan), positionInNode, nodeRanks);
}

using Names = std::vector<ChunkName>;

TEST(Values, OfASlotUsedInTurnAreNamedByWhereTheyGo) {
    PlanBuilder plan = builderFor(Collective::kAllReduce, {0, 1});
    const Slice slot = plan.grabScratch({{0, 1}});  // as wide as the wide chunk
    for (const int chunk : {0, 1}) {
        plan.recv(1, slot);
        plan.reduce(plan.output()({chunk}), {slot, plan.input()({chunk})}, Completes::kYes);
    }
    const CompiledPlan compiled = compile(plan, {0, -1});
    ASSERT_EQ(compiled.nodes.size(), 4U);
    EXPECT_EQ(compiled.nodes[0].targetNames, (Names{{0, 0}}));  // not the slot's own name
    EXPECT_EQ(compiled.nodes[1].sourceNames, (std::vector<Names>{{{0, 0}}, {{0, 0}}}));
    EXPECT_EQ(compiled.nodes[2].targetNames, (Names{{0, 1}}));
    EXPECT_EQ(compiled.nodes[3].sourceNames, (std::vector<Names>{{{0, 1}}, {{0, 1}}}));
}

TEST(Values, KeepTheirNamesThroughCopies) {
    PlanBuilder plan = builderFor(Collective::kAllReduce, {0, 1});
    const Slice first = plan.grabScratch({{0, 1}});
    const Slice second = plan.grabScratch({{0, 1}});
    plan.copy(first, plan.input()({0}));
    plan.copy(second, first);
    plan.send(1, second);
    plan.recv(1, plan.output()({0}));
    const CompiledPlan compiled = compile(plan, {0, -1});
    ASSERT_EQ(compiled.nodes.size(), 4U);
    EXPECT_EQ(compiled.nodes[1].targetNames, (Names{{0, 0}}));
    EXPECT_EQ(compiled.nodes[2].sourceNames, (std::vector<Names>{{{0, 0}}}));
}

TEST(Values, ThatGoNowhereHaveTheNameOfTheirSlot) {
    PlanBuilder plan = builderFor(Collective::kAllReduce, {0, 1});
    const Slice slot = plan.grabScratch({{0, 1}});
    plan.recv(1, slot);
    const CompiledPlan compiled = compile(plan, {0, -1});
    EXPECT_EQ(compiled.nodes.at(0).targetNames, (Names{{0, 1}}));
}

TEST(Values, OfAPeersSlotAreNewAfterAWait) {
    PlanBuilder plan = builderFor(Collective::kAllReduce, {0, 0}, Mapping::kShared);
    (void)plan.grabShared({{0, 1}});
    const std::array<Rank, 1> peer = {1};
    for (const int chunk : {0, 1}) {
        plan.wait(peer);
        plan.copy(plan.output()({chunk}), plan.at(1).shared(0));
    }
    const CompiledPlan compiled = compile(plan, {0, 1});
    ASSERT_EQ(compiled.nodes.size(), 4U);
    EXPECT_EQ(compiled.nodes[1].sourceNames, (std::vector<Names>{{{0, 0}}}));
    EXPECT_EQ(compiled.nodes[3].sourceNames, (std::vector<Names>{{{0, 1}}}));
}

TEST(Values, OfBlocksBelongToTheirRank) {
    PlanBuilder plan = builderFor(Collective::kAllGather, {0, 1, 1}, Mapping::kNone, {});
    const Slice slot = plan.grabScratch({{2, 0}});
    plan.recv(2, slot);
    plan.copy(plan.output()({2}), slot);
    plan.send(1, plan.input()({0}));
    const CompiledPlan compiled = compile(plan, {0, -1, -1});
    EXPECT_EQ(compiled.nodes.at(0).targetNames, (Names{{2, 0}}));
    EXPECT_EQ(compiled.nodes.at(2).sourceNames, (std::vector<Names>{{{0, 0}}}));
}

TEST(CompiledPlans, CountMessagesPerPeerChannelAndDirectionAndSignalsPerPeer) {
    PlanBuilder plan = builderFor(Collective::kAllReduce, {0, 0, 1}, Mapping::kAll);
    const std::array<Rank, 1> near = {1};
    const std::array<Rank, 2> both = {1, 2};
    plan.send(2, plan.input()({0}));
    plan.send(2, plan.input()({1}));
    plan.send(2, plan.input()({0}), 1);
    plan.recv(2, plan.output()({0}));
    plan.signal(near);
    plan.signal(both);
    plan.wait(near);
    const CompiledPlan compiled = compile(plan, {0, 1, -1});
    ASSERT_EQ(compiled.nodes.size(), 7U);
    EXPECT_EQ(compiled.nodes[0].message, 0U);
    EXPECT_EQ(compiled.nodes[1].message, 1U);
    EXPECT_EQ(compiled.nodes[2].message, 0U);  // another channel
    EXPECT_EQ(compiled.nodes[3].message, 0U);  // another direction
    EXPECT_EQ(compiled.signalsTo, (std::vector<std::uint32_t>{0, 2}));
    EXPECT_EQ(compiled.waitsOn, (std::vector<std::uint32_t>{0, 1}));
    ASSERT_EQ(compiled.nodes[5].peers.size(), 2U);
    EXPECT_EQ(compiled.nodes[5].peers[0].position, 1);
    EXPECT_EQ(compiled.nodes[5].peers[0].ordinal, 1U);  // the second to this peer
    EXPECT_EQ(compiled.nodes[5].peers[1].position, -1);
    EXPECT_EQ(compiled.nodes[5].peers[1].ordinal, 0U);
    EXPECT_TRUE(compiled.usesMessages);
}

TEST(CompiledPlans, StoreCopiesOfAResultInTheSamePass) {
    PlanBuilder plan = builderFor(Collective::kAllReduce, {0, 0, 0}, Mapping::kAll, {});
    const Slice result = plan.output()({0});
    plan.reduce(result, {plan.input()({0}), plan.at(1).input({0})}, Completes::kYes);
    const Slice once = plan.at(1).output({0});
    const Slice more = plan.at(2).output({0});
    plan.copy({once[0], more[0]}, {result[0], result[0]});  // one step to two places
    const CompiledPlan compiled = compile(plan, {0, 1, 2});
    EXPECT_EQ(compiled.nodes.at(0).also, (std::vector<Slice>{once, more}));
    EXPECT_TRUE(compiled.nodes.at(1).isFused);
    EXPECT_EQ(compiled.first, (std::vector<int>{0}));
    EXPECT_EQ(compiled.nodes[1].waitsFor, 1U);
    EXPECT_FALSE(compiled.usesMessages);
}

TEST(CompiledPlans, DoNotFuseACopyOfAPartOfAResult) {
    PlanBuilder plan = builderFor(Collective::kAllReduce, {0, 0}, Mapping::kAll);
    plan.reduce(plan.output()({0, 1}), {plan.input()({0, 1}), plan.at(1).input({0, 1})},
                Completes::kYes);
    plan.copy(plan.at(1).output({1}), plan.output()({1}));
    const CompiledPlan compiled = compile(plan, {0, 1});
    EXPECT_TRUE(compiled.nodes.at(0).also.empty());
    EXPECT_FALSE(compiled.nodes.at(1).isFused);
}

Plan planOf(Collective collective, Rank me, int ranks, Chunking chunking = {}) {
    Plan plan;
    plan.collective = collective;
    plan.me = me;
    plan.ranks = ranks;
    plan.chunking = std::move(chunking);
    return plan;
}

CallRequest callOf(Collective collective, DataType type, BlockCounts counts) {
    CallRequest call;
    call.collective = collective;
    call.type = type;
    call.counts = std::move(counts);
    return call;
}

TEST(ExtentsOf, SegmentsCoverABlockOnceWhateverDividesByNothing) {
    for (const std::size_t elements : {0U, 1U, 5U, 10U, 1001U}) {
        for (const int segments : {1, 3, 7}) {
            const Plan plan = planOf(Collective::kAllReduce, 0, 2, kThirds);
            const CallRequest call =
                callOf(Collective::kAllReduce, DataType::kInt16, {elements, {}, {}, {}});
            const Extents extents(plan, call, segments);
            std::size_t end = 0;
            for (int segment = 0; segment < segments; ++segment) {
                for (const int chunk : {0, 1}) {
                    const std::size_t bytes = extents.bytesIn({0, chunk}, segment);
                    EXPECT_EQ(extents.offsetOf({0, Buffer::kInput, chunk}, segment), end);
                    EXPECT_EQ(extents.offsetOf({0, Buffer::kOutput, chunk}, segment), end);
                    EXPECT_LE(bytes, extents.scratchCapacity({0, chunk}));
                    end += bytes;
                }
            }
            EXPECT_EQ(end, elements * 2);
            EXPECT_EQ(extents.inputBytes(), elements * 2);
            EXPECT_EQ(extents.outputBytes(), elements * 2);
        }
    }
}

TEST(ExtentsOf, AreByHand) {
    // 10 elements in 3 segments: [0, 3) [3, 6) [6, 10); thirds of those: 1 + 2, 1 + 2, 1 + 3.
    const Plan plan = planOf(Collective::kAllReduce, 0, 2, kThirds);
    const CallRequest call = callOf(Collective::kAllReduce, DataType::kFloat32, {10, {}, {}, {}});
    const Extents extents(plan, call, 3);
    EXPECT_EQ(extents.offsetOf({0, Buffer::kInput, 0}, 2), 24U);
    EXPECT_EQ(extents.bytesIn({0, 0}, 2), 4U);
    EXPECT_EQ(extents.offsetOf({0, Buffer::kInput, 1}, 2), 28U);
    EXPECT_EQ(extents.bytesIn({0, 1}, 2), 12U);
    EXPECT_EQ(extents.offsetOf({0, Buffer::kOutput, 1}, 1), 16U);
    EXPECT_EQ(extents.scratchCapacity({0, 1}), 12U);  // two thirds of 4, rounded up
    EXPECT_EQ(extents.scratchCapacity({0, 0}), 8U);   // a third of 4, rounded up
}

TEST(ExtentsOf, BlocksOfDifferentSizesFollowOneAnother) {
    const Plan plan = planOf(Collective::kAllGather, 2, 3);
    const CallRequest call =
        callOf(Collective::kAllGather, DataType::kFloat64, {0, {3, 0, 5}, {}, {}});
    const Extents extents(plan, call, 1);
    EXPECT_EQ(extents.offsetOf({2, Buffer::kInput, 0}, 0), 0U);  // my block, wherever it will lie
    EXPECT_EQ(extents.offsetOf({2, Buffer::kOutput, 1}, 0), 24U);
    EXPECT_EQ(extents.offsetOf({2, Buffer::kOutput, 2}, 0), 24U);
    EXPECT_EQ(extents.bytesIn({0, 0}, 0), 24U);
    EXPECT_EQ(extents.bytesIn({1, 0}, 0), 0U);
    EXPECT_EQ(extents.bytesIn({2, 0}, 0), 40U);
    EXPECT_EQ(extents.inputBytes(), 40U);
    EXPECT_EQ(extents.outputBytes(), 64U);
}

TEST(ExtentsOf, UniformBlocksOfAScatteredSum) {
    const Plan plan = planOf(Collective::kReduceScatter, 1, 4);
    const CallRequest call = callOf(Collective::kReduceScatter, DataType::kInt32, {6, {}, {}, {}});
    const Extents extents(plan, call, 2);
    EXPECT_EQ(extents.offsetOf({1, Buffer::kInput, 3}, 1), 84U);  // block 3 of 24 bytes, half 1
    EXPECT_EQ(extents.offsetOf({1, Buffer::kOutput, 0}, 1), 12U);
    EXPECT_EQ(extents.inputBytes(), 96U);
    EXPECT_EQ(extents.outputBytes(), 24U);
}

TEST(ExtentsOf, AnExchangeWithCountsKnowsWhatItSendsAndGets) {
    const Plan plan = planOf(Collective::kAllToAll, 1, 3);
    CallRequest call = callOf(Collective::kAllToAll, DataType::kUint8, {});
    call.counts.sent = {4, 5, 6};
    call.counts.received = {7, 5, 0};
    const Extents extents(plan, call, 1);
    EXPECT_EQ(extents.offsetOf({1, Buffer::kInput, 2}, 0), 9U);
    EXPECT_EQ(extents.offsetOf({1, Buffer::kOutput, 2}, 0), 12U);
    EXPECT_EQ(extents.bytesIn({1 * 3 + 2, 0}, 0), 6U);  // from me to 2
    EXPECT_EQ(extents.bytesIn({0 * 3 + 1, 0}, 0), 7U);  // from 0 to me
    EXPECT_EQ(extents.bytesIn({2 * 3 + 1, 0}, 0), 0U);
    EXPECT_EQ(extents.inputBytes(), 15U);
    EXPECT_EQ(extents.outputBytes(), 12U);
}

TEST(ExtentsOf, PassesOfAnExchangeTakeAPieceOfEachBlockInTheNode) {
    const Plan plan = planOf(Collective::kAllToAll, 1, 3);
    CallRequest call = callOf(Collective::kAllToAll, DataType::kUint16, {});
    call.counts.sent = {4, 5, 600};
    call.counts.received = {7, 5, 600};
    const std::vector<int> positionOf = {0, 1, -1};  // rank 2 is on another node
    Extents extents(plan, call, 1);
    extents.cutBlocks(3, positionOf);
    const ChunkName toFirst{1 * 3 + 0, 0};
    const ChunkName fromFirst{0 * 3 + 1, 0};
    const ChunkName toOther{1 * 3 + 2, 0};
    const std::size_t sent[] = {6, 2, 0, 0};
    const std::size_t received[] = {6, 6, 2, 0};
    for (int pass = 0; pass < 4; ++pass) {
        EXPECT_EQ(extents.bytesIn(toFirst, pass), sent[pass]);
        EXPECT_EQ(extents.bytesIn(fromFirst, pass), received[pass]);
        EXPECT_EQ(extents.bytesIn(toOther, pass), pass == 0 ? 1200U : 0U);
    }
    EXPECT_EQ(extents.offsetInBlock(fromFirst, 2), 12U);
    EXPECT_EQ(extents.offsetOf({1, Buffer::kInput, 0}, 1), 6U);
    EXPECT_EQ(extents.offsetOf({1, Buffer::kInput, 1}, 1), 8U + 6U);
    EXPECT_EQ(extents.offsetOf({1, Buffer::kOutput, 1}, 1), 14U + 6U);
    EXPECT_EQ(extents.scratchCapacity(toFirst), 6U);
    EXPECT_EQ(extents.scratchCapacity(toOther), 1200U);
}

TEST(ExtentsOf, OnlyTheRootHasWhatIsOnlyItsOwn) {
    for (const Rank me : {0, 1}) {
        const Plan plan = planOf(Collective::kGather, me, 4);
        const CallRequest call = callOf(Collective::kGather, DataType::kFloat32, {10, {}, {}, {}});
        const Extents extents(plan, call, 1);
        EXPECT_EQ(extents.inputBytes(), 40U);
        EXPECT_EQ(extents.outputBytes(), me == 0 ? 160U : 0U);
    }
    const Plan barrier = planOf(Collective::kBarrier, 0, 4);
    const CallRequest call = callOf(Collective::kBarrier, DataType::kUint8, {});
    EXPECT_EQ(Extents(barrier, call, 1).inputBytes(), 0U);
    EXPECT_EQ(Extents(barrier, call, 1).outputBytes(), 0U);
}

}  // namespace
}  // namespace isthmus::test
