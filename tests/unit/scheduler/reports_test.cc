// Reports of users as fixtures; the symptom is in the report, the right answer here. Others stand
// beside what they concern: grep for '#'.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "scheduler/placement/placement.hpp"
#include "scheduler/placement/shape.hpp"
#include "tests/unit/scheduler/brute_force.hpp"
#include "tests/unit/scheduler/shapes.hpp"

namespace isthmus::scheduler {
namespace {

using test::perAxis;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Placement placed(const Cluster& cluster, const Degrees& degrees, const AxisBytes& bytes) {
    const Result<SearchAnswer> answer =
        search({cluster, degrees, [&](const Degrees&) { return std::optional(bytes); }, 1}, {});
    EXPECT_TRUE(answer.ok()) << answer.status().what();
    return placementOf(cluster, answer->best.front(), PerAxis<bool>(true));
}

/// On how many nodes, or groups of the level, each group of the axis is at most.
std::size_t mostPlaces(const Placement& placement, Axis axis, int level = -1) {
    std::size_t most = 0;
    for (const std::vector<int>& group : groupsOf(placement, axis)) {
        std::set<std::string> places;
        for (const int rank : group) {
            const auto node =
                static_cast<std::size_t>(placement.seats[static_cast<std::size_t>(rank)].node);
            const Node& at = placement.cluster.nodes[node];
            places.insert(level < 0 ? at.name : at.at[static_cast<std::size_t>(level)]);
        }
        most = std::max(most, places.size());
    }
    return most;
}

// TOPO-01 (pytorch#161776): shards inside a node, replicas across, whichever name comes first.
TEST(Reports, ShardGroupsStayInTheirNode) {
    const Placement placement =
        placed(*clusterOf("2x2"), perAxis(1, 1, 1, 4, 1), perAxis<std::int64_t>(0, 0, 0, 100, 0));
    const AxisVolumes volumes{placement.degrees, 2, std::vector<StageVolumes>(1)};
    EXPECT_THAT(groupsOf(volumes, Span::kShard, 0),
                ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
    EXPECT_THAT(groupsOf(volumes, Span::kReplicate, 0),
                ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3)));
    EXPECT_THAT(placement.nodeOfRank(), ElementsAre(0, 0, 1, 1));
}

// TOPO-05 (nccl#1277): names of cards are facts of their node.
TEST(Reports, NodesMayNameTheirCardsAsTheyLike) {
    const Result<Cluster> cluster = clusterFromJson(R"({"isthmus_topology": 1, "nodes": [
        {"name": "a", "devices": 2, "cards": [{"name": "va0", "bits_per_second": 1e10}]},
        {"name": "b", "devices": 3, "cards": [{"name": "enp9", "bits_per_second": 1e10}]}]})");
    ASSERT_TRUE(cluster.ok()) << cluster.status().what();
    const Placement placement =
        placed(*cluster, perAxis(1, 1, 1, 5, 1), perAxis<std::int64_t>(0, 0, 0, 8, 0));
    EXPECT_EQ(placement.cost, (NodeCost{8, 16}));
}

// TOPO-09 (ray#60439): every coordinate once, whatever axes are named; a hand-made map that gives
// one twice is refused.
TEST(Reports, CoordinatesAreThereOnce) {
    Placement placement = placed(*clusterOf("2x4"), perAxis(2, 1, 1, 2, 2),
                                 perAxis<std::int64_t>(3200, 0, 0, 800, 200));
    placement.isNamed = PerAxis<bool>(false);
    for (const Axis axis : {Axis::kTensor, Axis::kData, Axis::kPipe})
        placement.isNamed[axis] = true;
    auto document = nlohmann::json::parse(toJson(placement, {}, nullptr));
    std::set<std::string> seen;
    for (const auto& rank : document["ranks"]) seen.insert(rank["coordinates"].dump());
    EXPECT_EQ(seen.size(), 8U);
    document["ranks"][4]["coordinates"] = document["ranks"][0]["coordinates"];
    EXPECT_THAT(placementFromJson(document.dump()).status().what(),
                HasSubstr("ranks[4].coordinates"));
    document["degrees"].erase("pipe");
    EXPECT_THAT(placementFromJson(document.dump()).status().what(), HasSubstr("want 4"));
}

// Megatron-LM#1537, #1856: a map of one's own is read, counted and compared like ours.
TEST(Reports, AMapOfOnesOwnIsTaken) {
    const Placement ours = placed(*clusterOf("2x4"), perAxis(2, 1, 1, 2, 2),
                                  perAxis<std::int64_t>(3200, 0, 0, 800, 200));
    auto document = nlohmann::json::parse(toJson(ours, {}, nullptr));
    for (auto& rank : document["ranks"]) {
        // Stages inside, replicas across.
        const int data = rank["coordinates"]["data"];
        rank["node"] = "node" + std::to_string(data);
        rank["device"] =
            rank["coordinates"]["tensor"].get<int>() + 2 * rank["coordinates"]["pipe"].get<int>();
    }
    const Result<Placement> theirs = placementFromJson(document.dump());
    ASSERT_TRUE(theirs.ok()) << theirs.status().what();
    const Shape shape(theirs->degrees);
    const Weights weights = *weightsOf(theirs->degrees, theirs->bytes);
    EXPECT_EQ(costOf(shape, weights, theirs->nodeOfRank(), 2), (NodeCost{4 * 800, 8 * 800}));
    EXPECT_EQ(ours.cost, (NodeCost{800, 1600}));
}

// Megatron-LM#6868: keys and values go round once a layer and micro-batch; they stay inside before
// what is sent once a step.
TEST(Reports, ContextIsMoreLocalThanReplicas) {
    const Placement placement = placed(*clusterOf("4x4"), perAxis(2, 2, 1, 4, 1),
                                       perAxis<std::int64_t>(9000, 4000, 0, 700, 0));
    EXPECT_EQ(mostPlaces(placement, Axis::kTensor), 1U);
    EXPECT_EQ(mostPlaces(placement, Axis::kContext), 1U);
    EXPECT_EQ(placement.cost.most, 4 * 700);
    EXPECT_TRUE(placement.isOptimal);
}

// TensorRT-LLM#10350: context outside of tensor: neighbours in rank are of one tensor group.
TEST(Reports, TensorIsNestedInContext) {
    const AxisVolumes volumes{ways(2, 1, 1, 2), 1, std::vector<StageVolumes>(1)};
    EXPECT_THAT(groupsOf(volumes, Span::kTensor, 0),
                ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
    EXPECT_THAT(groupsOf(volumes, Span::kContext, 0),
                ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3)));
}

// Megatron-LM#1456: experts that fit into a node send nothing between nodes.
TEST(Reports, ExpertsThatFitIntoANodeStayThere) {
    const Placement placement = placed(*clusterOf("2x8"), perAxis(1, 1, 8, 2, 1),
                                       perAxis<std::int64_t>(0, 0, 7000, 100, 0));
    EXPECT_EQ(mostPlaces(placement, Axis::kExpert), 1U);
    EXPECT_EQ(placement.cost.most, 8 * 100);
}

// NeMo-RL#2612: a rack is one NVLink domain; tensor groups and pipes stay in it, replicas leave.
TEST(Reports, PipesStayInTheirRack) {
    const Placement placement = placed(*clusterOf("3x6x4"), perAxis(4, 1, 1, 3, 6),
                                       perAxis<std::int64_t>(9000, 0, 0, 100, 300));
    EXPECT_EQ(mostPlaces(placement, Axis::kTensor), 1U);
    EXPECT_EQ(mostPlaces(placement, Axis::kPipe, 0), 1U);
    EXPECT_EQ(mostPlaces(placement, Axis::kData, 0), 3U);
}

}  // namespace
}  // namespace isthmus::scheduler
