#include "scheduler/placement/placement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "scheduler/cluster/trim.hpp"
#include "scheduler/placement/emit.hpp"
#include "scheduler/placement/validate.hpp"
#include "scheduler/search/orders.hpp"
#include "tests/unit/scheduler/brute_force.hpp"

namespace isthmus::scheduler {
namespace {

using test::perAxis;
using ::testing::HasSubstr;

Placement placed(const Cluster& cluster, const Degrees& degrees, const AxisBytes& bytes) {
    Question question;
    question.cluster = cluster;
    question.wanted = degrees;
    question.volumes = [&](const Degrees&) { return bytes; };
    const Result<SearchAnswer> answer = search(question, {});
    EXPECT_TRUE(answer.ok()) << answer.status().what();
    PerAxis<bool> isNamed;
    for (const Axis axis : kAxes) isNamed[axis] = degrees[axis] > 1;
    Placement placement = placementOf(cluster, answer->best.front(), isNamed);
    placement.orders = costsOfOrders(cluster, degrees, bytes);
    return placement;
}

/// Nodes that the groups of an axis are on: all of them on one, or not.
bool areWhole(const Placement& placement, Axis axis) {
    for (const std::vector<int>& group : groupsOf(placement, axis)) {
        for (const int rank : group) {
            if (placement.seats[static_cast<std::size_t>(rank)].node !=
                placement.seats[static_cast<std::size_t>(group.front())].node) {
                return false;
            }
        }
    }
    return true;
}

NodeCost orderCost(const Placement& placement, const std::string& name) {
    for (const OrderCost& order : placement.orders) {
        if (order.name == name) return order.cost;
    }
    ADD_FAILURE() << "no order " << name;
    return {};
}

Cluster clusterOfJson(const std::string& nodes) {
    const Result<Cluster> cluster =
        clusterFromJson("{\"isthmus_topology\": 1, \"nodes\": [" + nodes + "]}");
    EXPECT_TRUE(cluster.ok()) << cluster.status().what();
    return *cluster;
}

const Degrees kTwoEach = perAxis(2, 1, 1, 2, 2);
const AxisBytes kMegabytes = perAxis<std::int64_t>(3200, 0, 0, 800, 200);

// SageMaker SDK, smd_model_parallel_general.rst: 8 ranks, t = p = d = 2.
TEST(Placement, SageMakerLetters) {
    const Shape shape(kTwoEach);
    const auto coordinates = [&](const std::string& letters, int rank) {
        for (const NamedOrder& order : namedOrders()) {
            if (order.name.rfind("sagemaker " + letters, 0) != 0) continue;
            const int at = sequenceOf(shape, order.fastestFirst)[static_cast<std::size_t>(rank)];
            return std::vector<int>{shape.coordinate(at, Axis::kData),
                                    shape.coordinate(at, Axis::kPipe),
                                    shape.coordinate(at, Axis::kTensor)};
        }
        return std::vector<int>{};
    };
    EXPECT_EQ(coordinates("DPT", 1), (std::vector<int>{0, 0, 1}));
    EXPECT_EQ(coordinates("DPT", 2), (std::vector<int>{0, 1, 0}));
    EXPECT_EQ(coordinates("DPT", 4), (std::vector<int>{1, 0, 0}));
    EXPECT_EQ(coordinates("PTD", 1), (std::vector<int>{1, 0, 0}));
    EXPECT_EQ(coordinates("PTD", 2), (std::vector<int>{0, 0, 1}));
    EXPECT_EQ(coordinates("PTD", 4), (std::vector<int>{0, 1, 0}));
}

// The same source: 8 ranks, two partitions, no tensor axis.
TEST(Placement, SageMakerGroups) {
    const Shape shape(perAxis(1, 1, 1, 4, 2));
    const auto pipes = [&](const std::string& letters) {
        std::vector<std::vector<int>> groups(4);
        for (const NamedOrder& order : namedOrders()) {
            if (order.name.rfind("sagemaker " + letters, 0) != 0) continue;
            const std::vector<int> sequence = sequenceOf(shape, order.fastestFirst);
            for (int rank = 0; rank < 8; ++rank) {
                const int at = sequence[static_cast<std::size_t>(rank)];
                groups[static_cast<std::size_t>(shape.coordinate(at, Axis::kData))].push_back(rank);
            }
        }
        return groups;
    };
    EXPECT_EQ(pipes("TPD (spread)"),
              (std::vector<std::vector<int>>{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
    EXPECT_EQ(pipes("DPT (cluster)"),
              (std::vector<std::vector<int>>{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
}

// scheduler.md 1.1: GPT-13B, t = 4, p = 4, d = 2 on 4 x 8. One copy of an activation at each
// boundary is 768 x 256 x 5120 x 2 bytes a replica, a quarter of it a rank; gradients are 12.85 GB
// of f16. torchtitan#286, picotron#17, DeepSpeed#434: tensor innermost, pipe across nodes.
TEST(Placement, GptOnFourNodesPutsThePipeAcrossThem) {
    const Degrees degrees = perAxis(4, 1, 1, 2, 4);
    const std::int64_t pipe = 768LL * 256 * 5120 * 2 / 4;
    const AxisBytes bytes = perAxis<std::int64_t>(60'000'000'000, 0, 0, 1'606'250'000, pipe);
    const Placement placement = placed(*clusterOf("4x8"), degrees, bytes);
    EXPECT_EQ(placement.cost.most, 8'053'063'680);
    EXPECT_TRUE(placement.isOptimal);
    EXPECT_TRUE(areWhole(placement, Axis::kTensor));
    EXPECT_TRUE(areWhole(placement, Axis::kData));
    EXPECT_EQ(orderCost(placement, "megatron tp-cp-ep-dp-pp").most, 8'053'063'680);
    EXPECT_EQ(orderCost(placement, "megatron tp-cp-ep-pp-dp").most,
              8 * 1'606'250'000LL + 4 * pipe);  // 14.9 GB
    // tdrussell/qlora-pipe#44: without gradients to speak of, replicas go across.
    const AxisBytes lora = perAxis<std::int64_t>(60'000'000'000, 0, 0, 1'000'000, pipe);
    const Placement adapter = placed(*clusterOf("4x8"), degrees, lora);
    EXPECT_TRUE(adapter.cost.most < placement.cost.most / 2);
    EXPECT_FALSE(areWhole(adapter, Axis::kData));
}

// dlrover#1740: experts and pipes inside a segment, only replicas across.
TEST(Placement, ExpertsAndPipesStayInASegment) {
    const Placement placement = placed(*clusterOf("2x8"), perAxis(1, 1, 4, 2, 2),
                                       perAxis<std::int64_t>(0, 0, 3000, 10, 500));
    EXPECT_TRUE(areWhole(placement, Axis::kExpert));
    EXPECT_TRUE(areWhole(placement, Axis::kPipe));
    EXPECT_EQ(placement.cost, (NodeCost{80, 160}));
    EXPECT_TRUE(placement.isOptimal && placement.isSumOptimal);
}

// DeepSpeed#3408, accelerate#2780: unequal nodes have explicit devices, never rank % count.
TEST(Placement, EveryRankHasADeviceOfItsOwn) {
    const Cluster cluster = clusterOfJson(
        R"({"name": "a", "devices": 4, "missing": [1]}, {"name": "b", "devices": 3}, {"name": "c", "devices": 2})");
    const Placement placement = placed(cluster, kTwoEach, kMegabytes);
    std::vector<Seat> seats = placement.seats;
    std::sort(seats.begin(), seats.end());
    EXPECT_EQ(seats,
              (std::vector<Seat>{{0, 0}, {0, 2}, {0, 3}, {1, 0}, {1, 1}, {1, 2}, {2, 0}, {2, 1}}));
    EXPECT_EQ(placement.cost, (NodeCost{5800, 12400}));
}

// TOPO-03: leaf switches are interleaved in the list; a ring crosses between them twice.
TEST(Placement, RingsFollowTheSwitches) {
    std::string nodes;
    for (int number = 1; number <= 8; ++number) {
        nodes += std::string(number == 1 ? "" : ", ") + "{\"name\": \"n" + std::to_string(number) +
                 "\", \"at\": [\"leaf" + std::to_string(number % 2) + "\"], \"devices\": 1}";
    }
    const Cluster cluster = clusterOfJson(nodes);
    const Placement placement =
        placed(cluster, perAxis(1, 1, 1, 8, 1), perAxis<std::int64_t>(0, 0, 0, 100, 0));
    const std::vector<int> ring = groupsOf(placement, Axis::kData).front();
    const auto leafOf = [&](int rank) {
        const int node = placement.seats[static_cast<std::size_t>(rank)].node;
        return cluster.nodes[static_cast<std::size_t>(node)].at.front();
    };
    int crossings = 0;
    for (std::size_t at = 0; at < ring.size(); ++at) {
        crossings += static_cast<int>(leafOf(ring[at]) != leafOf(ring[(at + 1) % ring.size()]));
    }
    EXPECT_EQ(crossings, 2);
}

// TOPO-13 and TOPO-16: the list's order does not matter, names differ in one letter.
TEST(Placement, TheSameMachinesGiveTheSameAnswer) {
    std::vector<std::string> nodes;
    for (int number = 0; number < 200; ++number) {
        std::string name(12, 'a');
        name[static_cast<std::size_t>(number % 12)] = static_cast<char>('b' + number / 12);
        nodes.push_back("{\"name\": \"" + name +
                        "\", \"devices\": " + std::to_string(number % 2 == 0 ? 1 : 3) + "}");
    }
    const auto answer = [&] {
        std::string list;
        for (const std::string& node : nodes) list += (list.empty() ? "" : ", ") + node;
        const Cluster cluster = clusterOfJson(list);
        Candidate candidate;
        candidate.degrees = perAxis(4, 1, 1, 100, 1);
        candidate.nodeOfRank =
            packBlocks(Shape(candidate.degrees), std::vector<Axis>(kAxes.begin(), kAxes.end()),
                       cluster.sizes());
        return toJson(placementOf(cluster, candidate, PerAxis<bool>(true)), {}, nullptr);
    };
    const std::string first = answer();
    std::mt19937 random(2);
    for (int round = 0; round < 5; ++round) {
        std::shuffle(nodes.begin(), nodes.end(), random);
        EXPECT_EQ(answer(), first);
    }
}

TEST(Placement, JsonHasWhatItPromises) {
    const Placement placement = placed(*clusterOf("3+3+2"), kTwoEach, kMegabytes);
    const std::string text = toJson(placement, {}, nullptr);
    const nlohmann::json json = nlohmann::json::parse(text);
    EXPECT_EQ(json["max_node_egress"], 5800);
    EXPECT_EQ(json["sum_node_egress"], 12400);
    EXPECT_EQ(json["lower_bound"], 5800);
    EXPECT_EQ(json["optimal"], true);
    EXPECT_EQ(json["degrees"], (nlohmann::json{{"tensor", 2}, {"data", 2}, {"pipe", 2}}));
    ASSERT_EQ(json["ranks"].size(), 8U);
    std::vector<int> nodeOfRank;
    std::vector<std::string> names;
    for (int rank = 0; rank < 8; ++rank) {
        const nlohmann::json& each = json["ranks"][static_cast<std::size_t>(rank)];
        EXPECT_EQ(each["rank"], rank);
        EXPECT_EQ(
            each["coordinates"],
            (nlohmann::json{{"tensor", rank % 2}, {"data", rank / 2 % 2}, {"pipe", rank / 4}}));
        const std::string name = each["node"];
        const auto at = std::find(names.begin(), names.end(), name);
        nodeOfRank.push_back(static_cast<int>(at - names.begin()));
        if (at == names.end()) names.push_back(name);
    }
    EXPECT_EQ(test::costByMessages(kTwoEach, kMegabytes, nodeOfRank, 3), (NodeCost{5800, 12400}));

    const Result<Placement> again = placementFromJson(text);
    ASSERT_TRUE(again.ok()) << again.status().what();
    EXPECT_EQ(again->seats, placement.seats);
    EXPECT_EQ(again->cluster, placement.cluster);
    EXPECT_EQ(again->bytes, placement.bytes);
}

TEST(Placement, JsonThatIsWrongIsRefused) {
    const std::string text =
        toJson(placed(*clusterOf("2x2"), perAxis(2, 1, 1, 2, 1), kMegabytes), {}, nullptr);
    const auto refusal = [&](const std::string& from, const std::string& to) {
        std::string changed = text;
        const std::size_t at = changed.rfind(from);
        EXPECT_NE(at, changed.npos) << from;
        changed.replace(at, from.size(), to);
        return placementFromJson(changed).status().what();
    };
    EXPECT_EQ(refusal("\"rank\": 3", "\"rank\": 2"), "ranks[3].rank: is not 3");
    EXPECT_EQ(refusal("\"device\": 1", "\"device\": 0"), "ranks[3]: another rank has its device");
    EXPECT_EQ(refusal("\"device\": 1", "\"device\": 9"),
              "ranks[3].device: the node has no device 9");
    EXPECT_EQ(refusal("\"data\": 1}", "\"data\": 0}"),
              "ranks[3].coordinates.data: rank 3 has 1: tensor changes fastest");
    EXPECT_EQ(refusal("\"node\": \"node1\", \"device\": 1", "\"node\": \"nodeX\", \"device\": 1"),
              "ranks[3].node: the topology has no \"nodeX\"");
}

std::vector<RealSeat> hosts(const std::vector<std::string>& names) {
    std::vector<RealSeat> seats;
    for (const std::string& name : names) seats.push_back({name, -1});
    return seats;
}

/// node7, node8, node66, node70 of two devices each; tensor pairs in nodes, replicas across.
Placement onFourHosts() {
    const Cluster cluster = clusterOfJson(
        R"({"name": "node66", "devices": 2}, {"name": "node7", "devices": 2},
           {"name": "node70", "devices": 2}, {"name": "node8", "devices": 2})");
    return placed(cluster, perAxis(2, 1, 1, 1, 4), perAxis<std::int64_t>(3200, 0, 0, 0, 200));
}

// pytorch/pytorch#191190.
TEST(Validate, HostsSortedAsTextAreNamed) {
    const Placement placement = onFourHosts();
    EXPECT_TRUE(validate(placement, hosts({"node7", "node7", "node8", "node8", "node66", "node66",
                                           "node70", "node70"}))
                    .holds());
    const Verdict verdict = validate(placement, hosts({"node66", "node66", "node7", "node7",
                                                       "node70", "node70", "node8", "node8"}));
    EXPECT_FALSE(verdict.holds());
    EXPECT_EQ(verdict.moves.size(), 8U);
    ASSERT_EQ(verdict.causes.size(), 1U);
    EXPECT_THAT(verdict.causes[0], HasSubstr("in the order of text"));
}

TEST(Validate, OtherOrdersAndMovesAreTold) {
    const Placement placement = onFourHosts();
    const Verdict cyclic = validate(placement, hosts({"node7", "node8", "node66", "node70", "node7",
                                                      "node8", "node66", "node70"}));
    ASSERT_EQ(cyclic.causes.size(), 1U);
    EXPECT_THAT(cyclic.causes[0], HasSubstr("cyclic"));
    // node7 has stages 0 and 2 of one chain: two cut pairs, one neighbour elsewhere and two.
    EXPECT_EQ(cyclic.real.most, 2 * 3200 + 3 * 200);
    const Verdict moved = validate(placement, hosts({"node7", "node7", "node8", "node66", "node8",
                                                     "node66", "node70", "node70"}));
    ASSERT_EQ(moved.moves.size(), 2U);
    EXPECT_EQ(moved.moves[0].rank, 3);
    EXPECT_EQ(moved.moves[1].real.host, "node8");
    EXPECT_TRUE(moved.canBeCounted);
    const Verdict strange = validate(placement, hosts({"node7", "node7", "node8", "node8", "node66",
                                                       "node66", "node70", "spare"}));
    EXPECT_EQ(strange.causes, std::vector<std::string>{"host \"spare\" is not in the topology"});
    EXPECT_FALSE(validate(placement, hosts({"node7"})).holds());
}

TEST(Validate, ReadsMaps) {
    const auto text = [](const std::string& map) {
        std::string all;
        const Result<std::vector<RealSeat>> seats = realSeatsOf(map);
        if (!seats.ok()) return seats.status().what();
        for (const RealSeat& seat : *seats) {
            all += (all.empty() ? "" : " ") + seat.host + ":" + std::to_string(seat.device);
        }
        return all;
    };
    EXPECT_EQ(text("a\nb # the second\n\na\n"), "a:-1 b:-1 a:-1");
    EXPECT_EQ(text("1 b\n0 a 3\n"), "a:3 b:-1");
    EXPECT_EQ(text(R"(["a", "b"])"), "a:-1 b:-1");
    EXPECT_EQ(text(R"({"1": {"node": "b", "device": 2}, "0": "a"})"), "a:-1 b:2");
    EXPECT_EQ(text("0 a\n0 b\n"), "line 2: rank 0 is there twice");
    EXPECT_EQ(text("1 a\n"), "rank 0 is missing");
    EXPECT_EQ(text("a b\n"), "line 1: \"a\" is no rank");
    EXPECT_EQ(text(""), "has no ranks");
    EXPECT_EQ(text(R"([{"nod": "a"}])"),
              "[0]: unknown field \"nod\"; known: rank, node, device, coordinates");
}

TEST(Emit, LaunchersGetTheirFiles) {
    const Placement placement = onFourHosts();
    EXPECT_THAT(emit(placement, Target::kOpenMpi),
                HasSubstr("rank 0=node7 slot=0\nrank 1=node7 slot=1\nrank 2=node8 slot=0\n"));
    EXPECT_EQ(emit(placement, Target::kSlurm),
              "node7\nnode7\nnode8\nnode8\nnode66\nnode66\nnode70\nnode70\n");
    EXPECT_EQ(emit(placement, Target::kMegatron),
              "--tensor-model-parallel-size 2\n--context-parallel-size 1\n"
              "--expert-model-parallel-size 1\n--pipeline-model-parallel-size 4\n");
    EXPECT_THAT(emit(placement, Target::kDeepSpeed), HasSubstr("dims=[4, 1, 2]"));
    EXPECT_THAT(emit(placement, Target::kTorchtitan),
                HasSubstr("--parallelism.pipeline_parallel_degree 4"));
    const auto map = nlohmann::json::parse(emit(placement, Target::kKubernetes));
    EXPECT_EQ(map["5"], (nlohmann::json{{"node", "node66"}, {"device", 1}}));
    const std::string script = emit(placement, Target::kTorchrun);
    EXPECT_THAT(script, HasSubstr("--rdzv_backend=static"));
    EXPECT_THAT(script, HasSubstr("'node66') node_rank=2 workers=2 devices=0,1 ranks='4 5' ;;"));
    EXPECT_EQ(targetNamed("helm").status().what(),
              "unknown target \"helm\"; known: torchrun, openmpi, slurm, kubernetes, megatron, "
              "deepspeed, torchtitan, nccl");
}

// NVIDIA/nccl#836: a group of 8 + 1 crosses rails; aligned groups do not.
TEST(Emit, CrossedRailsAreTold) {
    EXPECT_THAT(emit(onFourHosts(), Target::kNccl), HasSubstr("NCCL_CROSS_NIC=0"));
    const Placement crossed =
        placed(*clusterOf("8+1"), perAxis(1, 1, 1, 9, 1), perAxis<std::int64_t>(0, 0, 0, 100, 0));
    EXPECT_THAT(emit(crossed, Target::kNccl), HasSubstr("NCCL_CROSS_NIC=1"));
}

TEST(Trim, LeavesWholeBlocks) {
    const std::vector<Cluster> ways = trimmed(*clusterOf("5+5+4"), 12, 4);
    ASSERT_FALSE(ways.empty());
    for (const Cluster& way : ways) EXPECT_EQ(way.ranks(), 12);
    EXPECT_TRUE(std::any_of(ways.begin(), ways.end(), [](const Cluster& way) {
        return way.sizes() == std::vector<int>{4, 4, 4};
    }));
    EXPECT_TRUE(trimmed(*clusterOf("2x2"), 5, 1).empty());
}

// A lost node: ranks of the others stay where they were.
TEST(Replan, RanksThatCanStayDo) {
    const Placement before =
        placed(*clusterOf("4x2"), perAxis(2, 1, 1, 4, 1), perAxis<std::int64_t>(100, 0, 0, 10, 0));
    const Cluster rest = *without(before.cluster, "node0");
    Placement after = placed(rest, perAxis(2, 1, 1, 3, 1), perAxis<std::int64_t>(100, 0, 0, 10, 0));
    const NodeCost cost = after.cost;
    // Replicas 1 and 2 were on two of the nodes that are left.
    EXPECT_EQ(keepSeats(before, after), 4);
    EXPECT_EQ(test::costByMessages(after.degrees, after.bytes, after.nodeOfRank(), 3), cost);
}

}  // namespace
}  // namespace isthmus::scheduler
