#include "comm/plan/builder.hpp"

#include <gtest/gtest.h>

#include "comm/plan/chunking.hpp"

namespace isthmus {
namespace {

PlanBuilder builder(Collective collective, Rank me, int ranks, Mapping mapping, int chunks = 1) {
    return {collective, me, ranks, 0, evenChunking(chunks), std::vector<int>(ranks, 0), mapping};
}

using Edges = std::vector<int>;

TEST(Edges, FollowLastWriterAndReadersSince) {
    auto plan = builder(Collective::kAllReduce, 0, 3, Mapping::kNone, 2);
    const Slice tmp = plan.grabScratch({{0, 0}});
    const Slice input = plan.input()({0});
    const Slice output = plan.output()({0});
    plan.send(1, input);                                // 0
    plan.recv(2, tmp);                                  // 1
    plan.reduce(output, {tmp, input}, Completes::kNo);  // 2: after 1; writes what 0 reads in place
    plan.recv(2, tmp);                                  // 3: overwrites what 2 read
    plan.reduce(output, {output, tmp}, Completes::kYes);  // 4: 2 is implied by 3
    plan.send(1, output);                                 // 5
    const auto made = plan.finish();
    ASSERT_TRUE(made.ok()) << made.status().what();
    EXPECT_EQ(made->steps[1].after, Edges{});
    EXPECT_EQ(made->steps[2].after, (Edges{0, 1}));
    EXPECT_EQ(made->steps[3].after, (Edges{2}));
    EXPECT_EQ(made->steps[4].after, (Edges{3}));
    EXPECT_EQ(made->steps[5].after, (Edges{4}));
}

TEST(Edges, IgnoreInPlaceNamesWhenThePlanMayNotRunInPlace) {
    auto plan = builder(Collective::kAllReduce, 0, 2, Mapping::kNone);
    plan.setInPlaceSafe(false);
    plan.send(1, plan.input()({0}));
    plan.recv(1, plan.output()({0}));
    const auto made = plan.finish();
    ASSERT_TRUE(made.ok());
    EXPECT_EQ(made->steps[1].after, Edges{});
}

TEST(Edges, FencesHoldAllButPrivateScratch) {
    auto plan = builder(Collective::kAllReduce, 0, 3, Mapping::kAll);
    const std::vector<Rank> all = {0, 1, 2};
    const Slice tmp = plan.grabScratch({{0, 0}});
    plan.meet(all);                                    // 0 signal, 1 wait
    plan.recv(1, tmp);                                 // 2: private, may be posted at once
    plan.copy(plan.output()({0}), plan.input()({0}));  // 3
    plan.send(2, tmp);                                 // 4: private
    plan.signal(all);                                  // 5: after 3; signal 0 is not implied by it
    const auto made = plan.finish();
    ASSERT_TRUE(made.ok());
    ASSERT_EQ(made->steps.size(), 6U);
    EXPECT_EQ(made->steps[0].peers, (std::vector<Rank>{1, 2}));
    EXPECT_EQ(made->steps[1].after, Edges{});
    EXPECT_EQ(made->steps[2].after, Edges{});
    EXPECT_EQ(made->steps[3].after, Edges{1});
    EXPECT_EQ(made->steps[4].after, Edges{2});
    EXPECT_EQ(made->steps[5].after, (Edges{0, 3}));
}

TEST(Builder, DropsEmptySlicesAndMyselfAmongPeers) {
    auto plan = builder(Collective::kBarrier, 0, 1, Mapping::kNone);
    plan.send(0, {});
    plan.recv(0, {});
    plan.copy({}, {});
    plan.reduce({}, {{}, {}}, Completes::kNo);
    plan.meet(std::vector<Rank>{0});
    const auto made = plan.finish();
    ASSERT_TRUE(made.ok());
    EXPECT_TRUE(made->steps.empty());
}

struct Mistake {
    const char* what;
    Mapping mapping;
    void (*write)(PlanBuilder&);
};

const Mistake kMistakes[] = {
    {"writes to input(0)@0", Mapping::kAll,
     [](PlanBuilder& p) { p.copy(p.input()({0}), p.output()({0})); }},
    {"not mapped here: input(0)@1", Mapping::kShared,
     [](PlanBuilder& p) { p.copy(p.output()({0}), p.at(1).input({0})); }},
    {"not mapped here: input(0)@2", Mapping::kAll,  // another node
     [](PlanBuilder& p) { p.copy(p.output()({0}), p.at(2).input({0})); }},
    {"no such output(1)@0", Mapping::kAll,
     [](PlanBuilder& p) { p.copy(p.output()({1}), p.input()({0})); }},
    {"no such shared(0)@1", Mapping::kAll,
     [](PlanBuilder& p) { p.copy(p.output()({0}), p.at(1).shared(0)); }},
    {"slices of 1 and 0 chunks", Mapping::kAll,
     [](PlanBuilder& p) { p.copy(p.output()({0}), {}); }},
    {"names peer 3", Mapping::kAll, [](PlanBuilder& p) { p.send(3, p.input()({0})); }},
    {"names a peer twice", Mapping::kAll,
     [](PlanBuilder& p) {
         p.signal(std::vector<Rank>{1, 2, 1});
     }},
    {"names peer 0", Mapping::kAll, [](PlanBuilder& p) { p.recv(0, p.output()({0})); }},
};

TEST(Builder, NamesMistakes) {
    for (const Mistake& mistake : kMistakes) {
        PlanBuilder plan(Collective::kAllReduce, 0, 3, 0, {}, {0, 0, 1}, mistake.mapping);
        mistake.write(plan);
        const auto made = plan.finish();
        ASSERT_FALSE(made.ok()) << mistake.what;
        EXPECT_EQ(made.status().code(), Status::Code::kInvalidArgument);
        EXPECT_NE(made.status().what().find(mistake.what), std::string::npos)
            << made.status().what();
    }
}

TEST(Builder, SizesScratchLikeWhatFlowsThroughIt) {
    PlanBuilder plan(Collective::kAllToAll, 1, 3, 0, evenChunking(2), {0, 0, 0}, Mapping::kShared);
    // input block d of rank 1 is block 1 * 3 + d of the operand; output block q is q * 3 + 1
    const std::vector<ChunkName> in = plan.like(plan.input()({4, 5}));
    EXPECT_EQ(in, (std::vector<ChunkName>{{5, 0}, {5, 1}}));
    const std::vector<ChunkName> out = plan.like(plan.output()({1}));
    EXPECT_EQ(out, (std::vector<ChunkName>{{1, 1}}));
    EXPECT_EQ(plan.like(plan.grabShared(in)), in);
}

TEST(Operand, KnowsWhatIsOneMemoryInPlace) {
    const auto inPlace = [](Collective collective, Rank root, Location location) {
        return Operand{collective, 4, root, 2}.inPlace(location);
    };
    const auto in = [](Rank rank, int chunk) { return Location{rank, Buffer::kInput, chunk}; };
    const auto out = [](Rank rank, int chunk) { return Location{rank, Buffer::kOutput, chunk}; };
    EXPECT_EQ(inPlace(Collective::kAllReduce, 0, in(3, 1)), out(3, 1));
    EXPECT_EQ(inPlace(Collective::kReduceScatter, 0, out(2, 1)), in(2, 5));
    EXPECT_EQ(inPlace(Collective::kAllGather, 0, in(2, 1)), out(2, 5));
    EXPECT_EQ(inPlace(Collective::kAllToAll, 0, in(2, 7)), out(2, 7));
    EXPECT_EQ(inPlace(Collective::kGather, 2, in(2, 0)), out(2, 4));
    EXPECT_EQ(inPlace(Collective::kGather, 2, in(1, 0)), in(1, 0));  // no output here
    EXPECT_EQ(inPlace(Collective::kScatter, 1, out(1, 1)), in(1, 3));
    EXPECT_EQ(inPlace(Collective::kScatter, 1, out(2, 1)), out(2, 1));
    EXPECT_EQ(inPlace(Collective::kReduce, 1, in(1, 1)), out(1, 1));
    EXPECT_EQ(inPlace(Collective::kReduce, 1, in(2, 1)), in(2, 1));
}

TEST(Chunking, CutsBlocksByFloor) {
    const Chunking thirds = evenChunking(3);
    EXPECT_EQ(chunkOf(thirds, 0, 10), (ElementRun{0, 3}));
    EXPECT_EQ(chunkOf(thirds, 1, 10), (ElementRun{3, 3}));
    EXPECT_EQ(chunkOf(thirds, 2, 10), (ElementRun{6, 4}));
    // segment 1 of 2 of 7 elements: [3, 7), 4 elements: 1, 1, 2
    EXPECT_EQ(chunkOf(thirds, 0, 7, 1, 2), (ElementRun{3, 1}));
    EXPECT_EQ(chunkOf(thirds, 2, 7, 1, 2), (ElementRun{5, 2}));
    EXPECT_EQ(chunkOf(thirds, 1, 0), (ElementRun{0, 0}));
    const std::int64_t huge = std::int64_t{1} << 62;
    EXPECT_EQ(floorOf(huge, {2, 4}), huge / 2);
}

TEST(Chunking, SlotsTakeEveryRoundingOfTheirWidth) {
    const Chunking thirds = evenChunking(3);
    EXPECT_EQ(slotElements(thirds, 0, 10), 4);
    EXPECT_EQ(slotElements(thirds, 0, 9), 3);
    EXPECT_EQ(slotElements(thirds, 0, 0), 0);
    EXPECT_TRUE(fitsSlot(thirds, {4, 2}, {4, 0}));
    EXPECT_FALSE(fitsSlot(thirds, {3, 0}, {4, 0}));  // blocks may differ in size
    const Chunking uneven = {{{0, 1}, {1, 3}, {1, 1}}};
    EXPECT_TRUE(fitsSlot(uneven, {0, 0}, {0, 1}));
    EXPECT_FALSE(fitsSlot(uneven, {0, 1}, {0, 0}));
}

}  // namespace
}  // namespace isthmus
