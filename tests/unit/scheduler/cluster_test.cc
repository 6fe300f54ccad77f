#include "scheduler/cluster/cluster.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace isthmus::scheduler {
namespace {

TEST(Cluster, ShortForms) {
    EXPECT_EQ(clusterOf("4x8")->sizes(), (std::vector<int>{8, 8, 8, 8}));
    EXPECT_EQ(clusterOf("3+3+2")->sizes(), (std::vector<int>{3, 3, 2}));
    EXPECT_EQ(clusterOf("2x4+1")->sizes(), (std::vector<int>{4, 4, 1}));
    EXPECT_EQ(clusterOf("5")->sizes(), (std::vector<int>{5}));
    const Result<Cluster> deep = clusterOf("2x3x4", 1e11);
    ASSERT_TRUE(deep.ok());
    EXPECT_EQ(deep->ranks(), 24);
    EXPECT_EQ(deep->nodes[4].at, (std::vector<std::string>{"rack1"}));
    EXPECT_EQ(deep->levels.size(), 3U);
    EXPECT_EQ(deep->nodes[0].bitsPerSecond(), 1e11);
    EXPECT_EQ(regularShape(*deep), (std::vector<int>{2, 3, 4}));
    EXPECT_TRUE(regularShape(*clusterOf("3+3+2")).empty());
    for (const char* text : {"4x8", "3+3+2", "2x3x4", "5x2+1"}) {
        EXPECT_EQ(clusterOf(text)->text(), text);
    }
    for (const char* wrong : {"", "x", "4x", "0x4", "4x8+", "4x-1", "2x2x2+1", "1048577",
                              "9x9x9999999", "4 x 8", "4x8x"}) {
        EXPECT_FALSE(clusterOf(wrong).ok()) << wrong;
    }
}

TEST(Cluster, NamesAreSortedAsPeopleCount) {
    // pytorch/pytorch#191190: as text node66 comes before node7.
    EXPECT_TRUE(comesBefore("node7", "node66"));
    EXPECT_TRUE(comesBefore("node66", "node70"));
    EXPECT_FALSE(comesBefore("node8", "node7"));
    EXPECT_TRUE(comesBefore("gpu-2-10", "gpu-10-1"));
    EXPECT_TRUE(comesBefore("n007", "n8"));
    EXPECT_TRUE(comesBefore("n01", "n1"));
    EXPECT_FALSE(comesBefore("n1", "n01"));
    EXPECT_TRUE(comesBefore("a", "ab"));
    EXPECT_FALSE(comesBefore("a", "a"));
}

constexpr const char* kTwoRacks = R"({
  "isthmus_topology": 1,
  "levels": [{"name": "spine", "oversubscription": 4}, {"name": "leaf"}, {"name": "node"}],
  "communicator_bits_per_second": 2e10,
  "device": {"flops_per_second": 1.25e14, "memory_bytes": 34359738368},
  "nodes": [
    {"name": "n10", "at": ["leaf2"], "devices": 4, "missing": [1],
     "cards": [{"bits_per_second": 1e11}, {"bits_per_second": 1e11}]},
    {"name": "n2", "at": ["leaf1"], "devices": [{"index": 3}, {"index": 0, "memory_bytes": 7}]}
  ]
})";

TEST(Cluster, ReadsItsJson) {
    const Result<Cluster> cluster = clusterFromJson(kTwoRacks);
    ASSERT_TRUE(cluster.ok()) << cluster.status().what();
    ASSERT_EQ(cluster->nodes.size(), 2U);
    const Node& first = cluster->nodes[0];
    EXPECT_EQ(first.name, "n2");
    EXPECT_EQ(first.devices[0].index, 0);
    EXPECT_EQ(first.devices[0].memoryBytes, 7);
    EXPECT_EQ(first.devices[1].index, 3);
    EXPECT_EQ(first.devices[1].memoryBytes, 34359738368);
    const Node& second = cluster->nodes[1];
    EXPECT_EQ(second.size(), 3);
    EXPECT_EQ(second.devices[1].index, 2);
    EXPECT_EQ(second.cards[1].rail, 1);
    EXPECT_EQ(second.bitsPerSecond(), 2e11);
    EXPECT_EQ(cluster->levels[0].oversubscription, 4);
    EXPECT_EQ(cluster->text(), "2+3");
    const Result<Cluster> again = clusterFromJson(toJson(*cluster));
    ASSERT_TRUE(again.ok()) << again.status().what();
    EXPECT_EQ(*again, *cluster);
}

TEST(Cluster, SaysWhereItsJsonIsWrong) {
    struct Row {
        const char* from;
        const char* to;
        const char* says;
    };
    const Row rows[] = {
        {"\"isthmus_topology\": 1", "\"isthmus_topology\": 2",
         "isthmus_topology: format 2, this version reads 1"},
        {"\"isthmus_topology\": 1", "\"topology\": 1",
         "has no \"isthmus_topology\": no topology of isthmus"},
        {"\"devices\": 4", "\"devices\": 0", "nodes[0].devices: is no whole number of 1 to 1024"},
        {"[1]", "[7]", "nodes[0].missing[0]: the node has no device 7"},
        {"n10", "n2", "nodes[1].name: \"n2\" is there twice"},
        {"\"index\": 3", "\"index\": 0", "nodes[1].devices: index 0 is there twice"},
        {"1e11}]", "-1}]", "nodes[0].cards[1].bits_per_second: is no number of at least 0.0"},
        {"[\"leaf1\"]", "[]", "nodes[1].at: has 0 groups, the first node 1"},
        {", {\"name\": \"leaf\"}", "",
         "levels: has 2, nodes in 1 groups want 3: the outermost first, the last inside a node"},
        {"\"at\": [\"leaf2\"]", "\"rack\": 1",
         "nodes[0]: unknown field \"rack\"; known: name, at, devices, missing, cards, "
         "flops_per_second, memory_bytes, memory_bytes_per_second"},
    };
    for (const Row& row : rows) {
        std::string text = kTwoRacks;
        text.replace(text.find(row.from), std::string(row.from).size(), row.to);
        EXPECT_EQ(clusterFromJson(text).status().what(), row.says);
    }
    EXPECT_FALSE(clusterFromJson("[]").ok());
    EXPECT_FALSE(clusterFromJson("{").ok());
}

// TOPO-13: the same machines listed in another order are the same cluster.
TEST(Cluster, OrderOfTheListDoesNotMatter) {
    std::vector<std::string> nodes;
    for (int number = 1; number <= 12; ++number) {
        nodes.push_back("{\"name\": \"n" + std::to_string(number) + "\", \"at\": [\"leaf" +
                        std::to_string(number % 2) + "\"], \"devices\": 4}");
    }
    const auto read = [&] {
        std::string list;
        for (const std::string& node : nodes) list += (list.empty() ? "" : ", ") + node;
        return clusterFromJson("{\"isthmus_topology\": 1, \"nodes\": [" + list + "]}");
    };
    const Cluster first = *read();
    std::mt19937 random(1);
    for (int round = 0; round < 50; ++round) {
        std::shuffle(nodes.begin(), nodes.end(), random);
        EXPECT_EQ(*read(), first);
    }
    EXPECT_EQ(regularShape(first), (std::vector<int>{2, 6, 4}));
}

TEST(Cluster, LosesNodesAndDevices) {
    const Cluster cluster = *clusterOf("2x4");
    EXPECT_EQ(without(cluster, "node1")->sizes(), (std::vector<int>{4}));
    EXPECT_EQ(without(cluster, "node1:2")->sizes(), (std::vector<int>{4, 3}));
    EXPECT_EQ(without(cluster, "node1:2")->nodes[1].devices[2].index, 3);
    EXPECT_EQ(without(cluster, "node7").status().what(), "lost node7: there is no node \"node7\"");
    EXPECT_EQ(without(cluster, "node1:4").status().what(),
              "lost node1:4: node \"node1\" has no device \"4\"");
    EXPECT_FALSE(without(cluster, "node1:").ok());
    EXPECT_FALSE(without(*clusterOf("1"), "node0:0").ok());
}

}  // namespace
}  // namespace isthmus::scheduler
