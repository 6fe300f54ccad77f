// Fixtures are written by hand from the formats' documentation: topology.conf(5), topology.yaml(5),
// hwloc's XML (hwloc2.dtd), NCCL's xml.cc, `nvidia-smi topo -m`.
#include "tools/import/import.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/placement/placement.hpp"
#include "tools/import/formats.hpp"

namespace isthmus::foreign {
namespace {

using scheduler::Cluster;
using scheduler::Node;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Cluster imported(const std::string& text, int devices = 1) {
    const Result<Cluster> cluster = clusterFromText(text, {"host", devices});
    EXPECT_TRUE(cluster.ok()) << cluster.status().what();
    return cluster.ok() ? *cluster : Cluster();
}

std::string refused(const std::string& text) {
    const Result<Cluster> cluster = clusterFromText(text, {"host", 1});
    EXPECT_FALSE(cluster.ok());
    return cluster.ok() ? "" : cluster.status().what();
}

std::vector<std::string> namesOf(const Cluster& cluster) {
    std::vector<std::string> names;
    for (const Node& node : cluster.nodes) names.push_back(node.name);
    return names;
}

TEST(HostList, KeepsWidthsAndMultipliesBrackets) {
    EXPECT_THAT(*hostsOf("gpu[01-03,10],login1"),
                ElementsAre("gpu01", "gpu02", "gpu03", "gpu10", "login1"));
    EXPECT_THAT(*hostsOf("r[1-2]n[08-10]"),
                ElementsAre("r1n08", "r1n09", "r1n10", "r2n08", "r2n09", "r2n10"));
    for (const char* wrong : {"a[1-", "a]1[", "a[3-1]", "a[x]", "a,,b", "a[1-99999999]", ""}) {
        EXPECT_THAT(hostsOf(wrong).status().what(), HasSubstr("host list")) << wrong;
    }
}

// TOPO-03: two leaf switches, hosts interleaved; the ring of all crosses between them twice.
constexpr const char* kLeaves = R"(# two leaves
SwitchName=leaf0 Nodes=n[1,3,5,7] LinkSpeed=100
switchname=leaf1 nodes=n[2,4,6,8]
SwitchName=spine \
  Switches=leaf[0-1]
)";

TEST(SlurmConf, SwitchesDecideTheOrderOfRings) {
    const Cluster cluster = imported(kLeaves, 2);
    EXPECT_THAT(namesOf(cluster), ElementsAre("n1", "n3", "n5", "n7", "n2", "n4", "n6", "n8"));
    EXPECT_THAT(cluster.nodes[4].at, ElementsAre("leaf1"));
    ASSERT_EQ(cluster.levels.size(), 3U);
    EXPECT_EQ(cluster.ranks(), 16);
    scheduler::Degrees degrees(1);
    degrees[scheduler::Axis::kData] = 16;
    scheduler::AxisBytes bytes;
    bytes[scheduler::Axis::kData] = 100;
    const auto candidate = searchAt(cluster, degrees, bytes, nullptr, {});
    ASSERT_TRUE(candidate.ok());
    const auto placement = placementOf(cluster, *candidate, scheduler::PerAxis<bool>(true));
    const std::vector<int> ring = groupsOf(placement, scheduler::Axis::kData).front();
    const auto leafOf = [&](int rank) {
        const int node = placement.seats[static_cast<std::size_t>(rank)].node;
        return cluster.nodes[static_cast<std::size_t>(node)].at.front();
    };
    int crossings = 0;
    for (std::size_t at = 0; at < ring.size(); ++at) {
        crossings += leafOf(ring[at]) != leafOf(ring[(at + 1) % ring.size()]) ? 1 : 0;
    }
    EXPECT_EQ(crossings, 2);
}

TEST(SlurmConf, LeavesMayLieAtDifferentDepths) {
    const Cluster cluster = imported(
        "SwitchName=a Nodes=x[1-2]\nSwitchName=b Nodes=x3\nSwitchName=c Switches=a\n"
        "SwitchName=top Switches=b,c\n");
    EXPECT_THAT(namesOf(cluster), ElementsAre("x3", "x1", "x2"));
    for (const Node& node : cluster.nodes) EXPECT_EQ(node.at.size(), 2U);
    EXPECT_THAT(
        imported("BlockName=b1 Nodes=x[01-02]\nBlockName=b2 Nodes=y1\nBlockSizes=2\n").nodes[2].at,
        ElementsAre("b2"));
}

TEST(SlurmConf, SaysWhichLineIsWrong) {
    EXPECT_EQ(refused("SwitchName=a Nodes=x1\nSwitchName=b Nodes=x[1-2]\n"),
              "line 2: node \"x1\" is under \"a\" already");
    EXPECT_EQ(refused("\nSwitchName=a Hosts=x1\n"),
              "line 2: unknown key \"Hosts\"; known: SwitchName, BlockName, Nodes, Switches, "
              "LinkSpeed, BlockSizes");
    EXPECT_EQ(refused("SwitchName=a Switches=b\n"), "line 1: no switch is named \"b\"");
    EXPECT_EQ(
        refused("SwitchName=a Nodes=x1\nSwitchName=b Switches=c,a\nSwitchName=c Switches=b\n"),
        "line 1: \"a\" is under switches that are under each other");
    EXPECT_THAT(refused("SwitchName=a Nodes=x[1\n"), HasSubstr("line 1: host list"));
    EXPECT_EQ(refused("SwitchName=a\n"), "no group has a node");
}

#ifdef ISTHMUS_HAS_YAML
TEST(SlurmYaml, TheDefaultTopologyIsRead) {
    const Cluster cluster = imported(R"(---
- topology: blocks
  cluster_default: false
  block:
    block_sizes: [2]
    blocks:
      - block: b1
        nodes: node[1-2]
- topology: switches
  cluster_default: true
  tree:
    switches:
      - switch: root
        children: s[1-2]
      - switch: s1
        nodes: node[01-02]
      - switch: s2
        nodes: node[03-04]
)",
                                     4);
    EXPECT_THAT(namesOf(cluster), ElementsAre("node01", "node02", "node03", "node04"));
    EXPECT_THAT(cluster.nodes[3].at, ElementsAre("s2"));
    EXPECT_EQ(cluster.ranks(), 16);
}

TEST(SlurmYaml, SaysWhichLineIsWrong) {
    EXPECT_EQ(refused("- topology: a\n  flat: true\n"),
              "line 1: has neither a tree nor blocks: nodes are not named");
    EXPECT_EQ(refused("- topology: a\n  tree:\n    switches:\n      - nodes: x1\n"),
              "line 4: has no \"switch\"");
    EXPECT_THAT(refused("- topology: a\n  tree: [\n"), HasSubstr("line "));
    EXPECT_THAT(refused("topology: a\n"), HasSubstr("no list"));
}
#endif

/// One machine as hwloc writes it: each NUMA node has two cores, or none.
std::string hwlocXml(const std::vector<bool>& hasCores, bool hasDevices) {
    std::string nodes;
    std::string cores;
    int core = 0;
    int object = 10;
    const auto number = [&] { return " gp_index=\"" + std::to_string(object++) + "\""; };
    const auto bits = [](int first, int count) {
        char text[32];
        std::snprintf(text, sizeof text, "0x%08x", ((1 << count) - 1) << first);
        return std::string(text);
    };
    const auto sets = [&](const std::string& cpus, const std::string& memory) {
        return " cpuset=\"" + cpus + "\" complete_cpuset=\"" + cpus + "\" nodeset=\"" + memory +
               "\" complete_nodeset=\"" + memory + "\"";
    };
    for (std::size_t node = 0; node < hasCores.size(); ++node) {
        const std::string memory = bits(static_cast<int>(node), 1);
        const std::string cpus = hasCores[node] ? bits(core, 2) : "0x0";
        const std::string numa = "<object type=\"NUMANode\" os_index=\"" + std::to_string(node) +
                                 "\"" + sets(cpus, memory) + number() +
                                 " local_memory=\"1073741824\"/>\n";
        if (!hasCores[node]) {
            nodes += numa;
            continue;
        }
        cores += "<object type=\"Package\" os_index=\"" + std::to_string(node) + "\"" +
                 sets(cpus, memory) + number() + ">\n" + numa;
        for (int each = 0; each < 2; ++each, ++core) {
            cores += "<object type=\"PU\" os_index=\"" + std::to_string(core) + "\"" +
                     sets(bits(core, 1), memory) + number() + "/>\n";
        }
        cores += "</object>\n";
    }
    std::string devices;
    const auto pci = [&](const char* busid, const char* type, const std::string& inner) {
        devices += "<object type=\"PCIDev\"" + number() + " pci_busid=\"" + busid +
                   "\" pci_type=\"" + type + "\" pci_link_speed=\"15.750000\">" + inner +
                   "</object>\n";
    };
    const auto os = [&](const char* name, int type) {
        return "<object type=\"OSDev\"" + number() + " name=\"" + name + "\" osdev_type=\"" +
               std::to_string(type) + "\"/>";
    };
    if (hasDevices) {
        devices = "<object type=\"Bridge\"" + number() +
                  " bridge_type=\"0-1\" depth=\"0\" bridge_pci=\"0000:[00-ff]\">\n";
        pci("0000:3b:00.0", "0302 [10de:20b0] [10de:144e] a1", os("cuda0", 5) + os("opencl0d0", 5));
        pci("0000:5e:00.0", "0302 [10de:20b0] [10de:144e] a1", os("cuda1", 5));
        pci("0000:af:00.0", "0200 [15b3:101b] [15b3:0006] 00", os("ib0", 2) + os("mlx5_0", 3));
        devices += "</object>\n";
    }
    const int all = static_cast<int>(hasCores.size());
    const std::string machine = sets(bits(0, core), bits(0, all)) + " allowed_cpuset=\"" +
                                bits(0, core) + "\" allowed_nodeset=\"" + bits(0, all) + "\"";
    return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
           "<topology version=\"2.0\">\n<object type=\"Machine\" os_index=\"0\"" +
           machine + " gp_index=\"1\">\n<info name=\"HostName\" value=\"gpu01\"/>\n" + nodes +
           cores + devices + "</object>\n</topology>\n";
}

TEST(HwlocXml, DevicesAreFunctionsNotTheirNames) {
    const Cluster cluster = imported(hwlocXml({true, true}, true));
    ASSERT_EQ(cluster.nodes.size(), 1U);
    EXPECT_EQ(cluster.nodes[0].name, "gpu01");
    EXPECT_EQ(cluster.nodes[0].size(), 2);
    ASSERT_EQ(cluster.nodes[0].cards.size(), 1U);
    EXPECT_EQ(cluster.nodes[0].cards[0].name, "ib0");
    EXPECT_EQ(cluster.nodes[0].cards[0].bitsPerSecond, 0);
}

// TOPO-07: 1, 2 and 8 NUMA nodes; one that has memory and no cores is no place for a rank.
TEST(HwlocXml, WithoutDevicesARankIsOnEachNumaNodeThatHasCores) {
    EXPECT_EQ(imported(hwlocXml({true}, false)).ranks(), 1);
    EXPECT_EQ(imported(hwlocXml({true, true}, false)).ranks(), 2);
    EXPECT_EQ(imported(hwlocXml(std::vector<bool>(8, true), false)).ranks(), 8);
    const Cluster partial = imported(hwlocXml({true, false, true}, false));
    EXPECT_EQ(partial.ranks(), 2);
    EXPECT_EQ(partial.nodes[0].devices[0].memoryBytes, 1 << 30);
    EXPECT_THAT(refused("<topology version=\"2.0\"><object"), HasSubstr("<topology>: hwloc"));
}

#ifdef ISTHMUS_HAS_PUGIXML
constexpr const char* kNccl = R"(<system version="1">
  <cpu numaid="0" affinity="0000ffff" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85">
    <pci busid="0000:1b:00.0" class="0x030200" link_speed="16 GT/s" link_width="16">
      <gpu dev="1" sm="80" rank="1" gdr="1"><nvlink target="0000:2c:00.0" count="12" tclass="0x068000"/></gpu>
    </pci>
    <pci busid="0000:1a:00.0" class="0x030200" link_speed="16 GT/s" link_width="16">
      <gpu dev="0" sm="80" rank="0" gdr="1"><nvlink target="0000:2c:00.0" count="12" tclass="0x068000"/></gpu>
    </pci>
  </cpu>
  <cpu numaid="-1">
    <pci busid="0000:9b:00.0" class="0x020700" link_speed="16 GT/s" link_width="16">
      <nic><net name="mlx5_0" dev="0" speed="200000" port="1" guid="0x1" maxconn="131072" gdr="1"/></nic>
    </pci>
  </cpu>
</system>
)";

TEST(NcclXml, DevicesLinksAndCards) {
    const Cluster cluster = imported(kNccl);
    ASSERT_EQ(cluster.nodes.size(), 1U);
    EXPECT_EQ(cluster.nodes[0].name, "host");
    EXPECT_EQ(cluster.nodes[0].size(), 2);
    EXPECT_EQ(cluster.nodes[0].bitsPerSecond(), 200e9);
    EXPECT_EQ(cluster.levels.back().bitsPerSecond, 12 * 20 * 8e9);  // 240 GB/s
}

TEST(NcclXml, SaysWhichElementIsWrong) {
    std::string text = kNccl;
    text.replace(text.find("dev=\"0\""), 7, "dev=\"1\"");
    EXPECT_EQ(refused(text), "system/cpu[0]/pci[1]/gpu[0]: dev 1 is there twice");
    text = kNccl;
    text.replace(text.find("speed=\"200000\""), 14, "speed=\"fast\"");
    EXPECT_THAT(refused(text), HasSubstr("system/cpu[1]/pci[0]/nic[0]/net[0]: "));
    EXPECT_EQ(refused("<system version=\"1\"/>"), "has no device that a rank could have");
    EXPECT_THAT(refused("<system><cpu"), HasSubstr("byte "));
}
#endif

constexpr const char* kMatrix =
    "\t\x1b[4mGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\tNUMA Affinity\x1b[0m\n"
    "GPU0\t X \tNV12\tNV12\tPXB\t0-15\t0\n"
    "GPU1\tNV12\t X \tNV12\tSYS\t0-15\t0\n"
    "GPU2\tNV12\tNV12\t X \tSYS\t16-31\t1\n"
    "NIC0\tPXB\tSYS\tSYS\t X \n"
    "\nLegend:\n\n  X    = Self\n  SYS  = Connection traversing PCIe\n"
    "  NV#  = Connection traversing a bonded set of # NVLinks\n"
    "\nNIC Legend:\n\n  NIC0: mlx5_0\n";

TEST(NvidiaSmi, TheMatrixHasDevicesAndCards) {
    const Cluster cluster = imported(kMatrix);
    EXPECT_EQ(cluster.ranks(), 3);
    ASSERT_EQ(cluster.nodes[0].cards.size(), 1U);
    EXPECT_EQ(cluster.nodes[0].cards[0].name, "mlx5_0");
    EXPECT_EQ(cluster.levels.back().bitsPerSecond, 2.4e12);  // A100: 300 GB/s each way
    std::string text = kMatrix;
    text.replace(text.find("SYS\t0-15"), 3, "FOO");
    EXPECT_EQ(refused(text), "line 3: \"FOO\" is no path that is known");
    text = kMatrix;
    text.replace(text.find("GPU2\tNV12"), 9, "Other");
    EXPECT_EQ(refused(text), "the matrix has 2 of 3 GPUs");
}

TEST(Import, KnowsWhatItIsNot) {
    EXPECT_EQ(refused(" \n"), "is empty");
    EXPECT_THAT(refused("hello"), HasSubstr("is none of: isthmus_topology JSON"));
    EXPECT_THAT(refused("<html/>"), HasSubstr("neither hwloc"));
    EXPECT_THAT(refused("{}"), HasSubstr("isthmus_topology"));
}

}  // namespace
}  // namespace isthmus::foreign
