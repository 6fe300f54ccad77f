#include "topology/model/snapshot.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>

namespace isthmus {
namespace {

TEST(NodeSnapshot, JsonGoesBothWays) {
    auto node = discoverNode();
    ASSERT_TRUE(node.ok()) << node.status().what();
    node->rdmaPorts = {
        {"mlx5_0", 1, true, "Ethernet", "eth3", 0, Fact<std::int64_t>::reported(100, "x")}};
    node->limits.processors = {1.5, Provenance::kMeasured, "here"};
    for (const int indent : {-1, 2}) {
        const auto again = nodeFromJson(toJson(*node, indent));
        ASSERT_TRUE(again.ok()) << again.status().what();
        EXPECT_EQ(*again, *node);
    }
}

TEST(NodeSnapshot, AFileMayGiveOnlyWhatItChanges) {
    NodeSnapshot base;
    base.hostName = "node-a";
    base.machine.cores = 8;
    base.machine.memoryBytes = Fact<std::int64_t>::reported(100, "hwloc");
    const auto node = nodeFromJson(
        R"({"machine": {"memory_bytes": 64}, "net_devices": [{"name": "eth0", "up": true,
            "bits_per_second": {"value": 1000, "from": "measured"}}]})",
        base);
    ASSERT_TRUE(node.ok()) << node.status().what();
    EXPECT_EQ(node->hostName, "node-a");
    EXPECT_EQ(node->machine.cores, 8);
    EXPECT_EQ(node->machine.memoryBytes.value, 64);
    EXPECT_EQ(node->machine.memoryBytes.from, Provenance::kGiven);
    ASSERT_EQ(node->netDevices.size(), 1u);
    EXPECT_EQ(node->netDevices[0].bitsPerSecond.from, Provenance::kMeasured);
    EXPECT_EQ(node->netDevices[0].numaNode, -1);
}

TEST(NodeSnapshot, MistakesAreNamed) {
    const std::pair<std::string, const char*> wrong[] = {
        {"", "the topology is no JSON text"},
        {"{", "the topology is no JSON text"},
        {std::string(100000, '['), "the topology is no JSON text"},
        {R"({"machine": {"cores": "8"}})", "machine.cores is wrong, expected a whole number"},
        {R"({"machine": {"cores": 8000000000}})",
         "machine.cores is wrong, expected a smaller number"},
        {R"({"machine": 1})", "machine. is wrong, expected an object"},
        {R"({"net_devices": [{}, {"up": 1}]})",
         "net_devices[1].up is wrong, expected true or false"},
        {R"({"limits": {"processors": {"value": 1, "from": "heard"}}})",
         "limits.processors.from is wrong, expected unknown, assumed, reported, measured or "
         "given"},
    };
    for (const auto& [text, what] : wrong) {
        const auto node = nodeFromJson(text);
        ASSERT_FALSE(node.ok()) << text.substr(0, 60);
        EXPECT_EQ(node.status().code(), Status::Code::kConfiguration);
        EXPECT_EQ(node.status().what(), what);
    }
}

TEST(NodeSnapshot, TheUsersFileIsRead) {
    char path[] = "/tmp/isthmus-topology-XXXXXX";
    ::close(::mkstemp(path));
    std::ofstream(path) << R"({"host_name": "other"})";
    const auto node = discoverNodeWith(path);
    ::unlink(path);
    ASSERT_TRUE(node.ok()) << node.status().what();
    EXPECT_EQ(node->hostName, "other");
    EXPECT_GE(node->machine.processors, 1);
    EXPECT_FALSE(discoverNodeWith(path).ok());
}

}  // namespace
}  // namespace isthmus
