// What calls of few bytes go by.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/selector/choices.hpp"

namespace isthmus {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kMegabyte = 1 << 20;

TEST(Select, LetsOneRankOfANodeSpeakForItInSmallCalls) {
    const auto limitOf = [](Collective collective, const Layout& layout) {
        std::uint64_t limit = 0;
        for (std::uint64_t bytes = 8; bytes <= kMegabyte; bytes *= 2) {
            const Selection selection = chosen(collective, bytes, layout);
            if (selection.algorithm != "two_level_leaders") break;
            EXPECT_EQ(selection.segments, 1);
            limit = bytes;
        }
        return limit;
    };
    for (const Collective collective : {Collective::kAllReduce, Collective::kAllGather,
                                        Collective::kReduceScatter, Collective::kAllToAll}) {
        EXPECT_EQ(limitOf(collective, equalNodes(3, 2)), 32768U) << nameOf(collective);
        // Its leader would read eight times that.
        EXPECT_EQ(limitOf(collective, equalNodes(2, 8)), 16384U) << nameOf(collective);
        EXPECT_EQ(limitOf(collective, equalNodes(4, 1)), 0U) << nameOf(collective);
        EXPECT_EQ(limitOf(collective, oneNode(4)), 0U) << nameOf(collective);
    }
    EXPECT_EQ(limitOf(Collective::kBroadcast, equalNodes(2, 2)), 8192U);
    EXPECT_EQ(limitOf(Collective::kReduce, equalNodes(4, 2)), 4096U);
    EXPECT_EQ(limitOf(Collective::kGather, equalNodes(4, 2)), 0U);
    SelectorOptions byName;
    byName.algorithm = "two_level_leaders";
    CallShape call;
    call.collective = Collective::kAllReduce;
    call.bytes = kMegabyte;
    EXPECT_EQ(select(call, equalNodes(2, 2), byName)->segments, 1);
    ++call.bytes;
    EXPECT_THAT(select(call, equalNodes(2, 2), byName).status().what(),
                HasSubstr("serves up to 1048576 bytes, not 1048577"));
}

TEST(Select, MeetsOnceOnlyForWhatFitsThere) {
    CallShape call;
    call.collective = Collective::kAllReduce;
    SelectorOptions options;
    options.inlineBytes = 4096;
    options.rules = *readAlgorithmRules("all_reduce=inline");
    call.bytes = 4097;
    EXPECT_EQ(select(call, oneNode(4), options)->algorithm, "direct");
    options.algorithm = "inline";
    const Result<Selection> refused = select(call, oneNode(4), options);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.status().code(), Status::Code::kInvalidArgument);
    EXPECT_THAT(refused.status().what(), HasSubstr("up to 4096 bytes (ISTHMUS_INLINE), not 4097"));
    call.bytes = 4096;
    EXPECT_EQ(select(call, oneNode(4), options)->algorithm, "inline");
}

TEST(Select, AddsUpAllFromCopiesWhileThatIsLittle) {
    const auto stagesOnce = [](Collective collective, std::uint64_t bytes, const Layout& layout) {
        return chosen(collective, bytes, layout).stagesOnce;
    };
    EXPECT_TRUE(stagesOnce(Collective::kAllReduce, 65536, oneNode(2)));
    EXPECT_FALSE(stagesOnce(Collective::kAllReduce, 65537, oneNode(2)));
    EXPECT_TRUE(stagesOnce(Collective::kAllReduce, 16384, oneNode(8)));
    EXPECT_FALSE(stagesOnce(Collective::kAllReduce, 16385, oneNode(8)));
    EXPECT_FALSE(stagesOnce(Collective::kAllReduce, 4096, oneNode(2)));  // inline as it is
    EXPECT_FALSE(stagesOnce(Collective::kAllGather, 16384, oneNode(2)));
    EXPECT_FALSE(stagesOnce(Collective::kAllReduce, 16384, equalNodes(2, 2)));
}

TEST(Select, MeetsOnceForLargerOperandsWhereRanksOnlyCopy) {
    SelectorOptions options;
    options.inlineBytes = kInlineWhereShared;
    const auto nameAt = [&](Collective collective, std::uint64_t bytes) {
        return chosen(collective, bytes, oneNode(4), options).algorithm;
    };
    for (const Collective collective : {Collective::kAllGather, Collective::kReduceScatter,
                                        Collective::kAllToAll, Collective::kBroadcast}) {
        EXPECT_EQ(nameAt(collective, 65536), "inline");
        EXPECT_EQ(nameAt(collective, 65537), "direct");
    }
    EXPECT_EQ(nameAt(Collective::kAllReduce, 16384), "inline");
    EXPECT_EQ(nameAt(Collective::kAllReduce, 16385), "direct");
}

TEST(Select, InOneNodeIsInlineForTinyCallsAndDirectForOthers) {
    EXPECT_EQ(chosen(Collective::kAllReduce, 8, oneNode(4)).algorithm, "inline");
    EXPECT_EQ(chosen(Collective::kAllReduce, 8192, oneNode(4)).algorithm, "inline");
    EXPECT_EQ(chosen(Collective::kAllReduce, 8193, oneNode(4)).algorithm, "direct");
    // What counts is the whole operand: a rank's slot has room for every block.
    EXPECT_EQ(chosen(Collective::kAllGather, 8192, oneNode(4)).algorithm, "inline");
    EXPECT_EQ(chosen(Collective::kAllGather, 8196, oneNode(4)).algorithm, "direct");
}

}  // namespace
}  // namespace isthmus
