// `isthmus topo probe` on emulated nodes whose cards are shaped: the rates are known from tbf.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cluster/program.hpp"

namespace isthmus::test {
namespace {

using nlohmann::json;

class Probe : public testing::Test {
protected:
    void SetUp() override {
        const Ended up = isthmus({"cluster", "up", "3", "--rate", "500mbit", "--name", name_});
        if (up.exitCode == 2) GTEST_SKIP() << "no emulated nodes on this machine: " << up.error;
        ASSERT_EQ(up.exitCode, 0) << up.error;
    }
    void TearDown() override { isthmus({"cluster", "down", "--name", name_}); }

    std::string name_ = "probed-" + std::to_string(::getpid());
    Folder folder_;
};

TEST_F(Probe, UnequalCardsAreFoundAndPlaceReadsThem) {
    const Ended slowed = isthmus({"cluster", "rate", "200mbit", "--node", "1", "--name", name_});
    ASSERT_EQ(slowed.exitCode, 0) << slowed.error;
    const std::string file = folder_.path() + "/topology.json";
    const Ended probed = isthmus({"run", "--on", name_, "--nodes", "2+2+1", "--", isthmusProgram(),
                                  "topo", "probe", "-o", file});
    ASSERT_EQ(probed.exitCode, 0) << probed.error;
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    const json topology = json::parse(text.str());
    ASSERT_EQ(topology["nodes"].size(), 3U);
    const double rates[] = {500e6, 200e6, 500e6};
    for (std::size_t node = 0; node < 3; ++node) {
        const json& each = topology["nodes"][node];
        EXPECT_EQ(each["name"], "node" + std::to_string(node));
        EXPECT_EQ(each["cards"][0]["name"], "eth0");
        EXPECT_EQ(each["devices"], node == 2 ? 1 : 2);
        const double rate = each["cards"][0]["bits_per_second"];
        EXPECT_NEAR(rate, rates[node], rates[node] / 10) << node;
        EXPECT_GT(each["flops_per_second"], 1e8) << "no processor is that slow";
    }
    // Equal cards are equal, or a search would take them for different ones.
    EXPECT_EQ(topology["nodes"][0]["cards"][0], topology["nodes"][2]["cards"][0]);
    EXPECT_GT(topology["levels"][0]["latency_seconds"], 0);
    EXPECT_LT(topology["levels"][1]["latency_seconds"], 1e-2);
    EXPECT_GT(topology["levels"][1]["bits_per_second"], 1e9) << "memory is faster than that";

    const Ended placed = isthmus(
        {"place", "--topology", file, "--axes", "data=5", "--bytes", "data=1000", "--json"});
    ASSERT_EQ(placed.exitCode, 0) << placed.error;
    EXPECT_EQ(json::parse(placed.output)["max_node_egress"], 1000);
}

TEST(ProbeAlone, StartsItsOwnNodesAndRefusesWhatIsNone) {
    const Ended probed =
        isthmus({"topo", "probe", "--nodes", "2x1", "--rate", "300mbit", "--json"});
    if (probed.exitCode == 2) GTEST_SKIP() << "no emulated nodes on this machine: " << probed.error;
    ASSERT_EQ(probed.exitCode, 0) << probed.error;
    const json topology = json::parse(probed.output);
    for (const json& node : topology["nodes"]) {
        const double rate = node["cards"][0]["bits_per_second"];
        EXPECT_NEAR(rate, 300e6, 30e6);
    }
    EXPECT_EQ(isthmus({"topo", "probe", "-o", "/nowhere/topology.json"}).exitCode, 1);
    EXPECT_EQ(isthmus({"topo"}).exitCode, 1);
}

}  // namespace
}  // namespace isthmus::test
