#include "comm/cost/plan_bytes.hpp"

#include <gtest/gtest.h>

#include "tests/unit/cost/plans.hpp"

namespace isthmus {
namespace {

TEST(PlanCall, CountsElementsOfOneBlock) {
    EXPECT_EQ(PlanCall::of(Collective::kAllReduce, DataType::kFloat32, 4096, 4).blockElements,
              1024);
    EXPECT_EQ(PlanCall::of(Collective::kAllGather, DataType::kFloat32, 4096, 4).blockElements, 256);
    EXPECT_EQ(PlanCall::of(Collective::kAllToAll, DataType::kUint8, 10, 4).blockElements, 2);
}

// Ranks 0, 1 | 2, 3: only 1 -> 2 and 3 -> 0 cross; each carries 6 pieces of 100 floats.
TEST(WireBytesOfRanks, CountsTheCrossingEdgesOfARing) {
    const std::vector<int> nodeOf = {0, 0, 1, 1};
    const std::vector<Plan> plans =
        plansOf(Collective::kAllReduce, nodeOf, 4, Mapping::kNone, writeRing);
    ASSERT_EQ(plans.size(), 4u);
    PlanCall call;
    call.blockElements = 400;
    const Layout layout = Layout::of(nodeOf);
    EXPECT_EQ(wireBytesOfRanks(plans, layout, call),
              (std::vector<WireBytes>{{0, 2400}, {2400, 0}, {0, 2400}, {2400, 0}}));
    EXPECT_EQ(wireBytesOfNodes(plans, layout, call),
              (std::vector<WireBytes>{{2400, 2400}, {2400, 2400}}));
}

// 10 elements in 3 segments are 3, 3 and 4; over 2 pieces 1 + 2, 1 + 2, 2 + 2.
TEST(WireBytesOfRanks, IsExactForSizesThatDivideByNothing) {
    const std::vector<int> nodeOf = {0, 1};
    const std::vector<Plan> plans =
        plansOf(Collective::kAllReduce, nodeOf, 2, Mapping::kNone, writeRing);
    ASSERT_EQ(plans.size(), 2u);
    PlanCall call;
    call.type = DataType::kUint8;
    call.blockElements = 10;
    call.segments = 3;
    EXPECT_EQ(segmentSizes(call).small, 3);
    EXPECT_EQ(segmentSizes(call).large, 4);
    EXPECT_EQ(segmentSizes(call).largeOnes, 1);
    // Rank 0 sends piece 0 (1 + 1 + 2) and then piece 1 (2 + 2 + 2); rank 1 the same two.
    EXPECT_EQ(wireBytesOfRanks(plans, Layout::of(nodeOf), call),
              (std::vector<WireBytes>{{10, 10}, {10, 10}}));
}

}  // namespace
}  // namespace isthmus
