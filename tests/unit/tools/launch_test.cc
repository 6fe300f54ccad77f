#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tools/cli/launch_plan.hpp"
#include "tools/cli/output_lines.hpp"

namespace isthmus::cli {
namespace {

TEST(PlaceRanks, CountsLocalRanksPerNodeWhateverTheOrder) {
    const auto spec = NodeSpec::parse("1+3");
    ASSERT_TRUE(spec.ok());
    const auto places = placeRanks(*spec, NodeSpec::Order::kRoundRobin);
    ASSERT_EQ(places.size(), 4U);
    EXPECT_EQ(places[1].node, 1);
    EXPECT_EQ(places[2].node, 1);
    EXPECT_EQ(places[2].localRank, 1);
    EXPECT_EQ(places[3].localRank, 2);
    EXPECT_EQ(places[3].localRanks, 3);
    EXPECT_EQ(places[0].localRanks, 1);
    EXPECT_EQ(places[0].nodes, 2);
}

TEST(Variables, SayTheSameInOurWordsAndInTorchruns) {
    const MeetingPlace meeting{"10.77.0.254:4000", "10.77.0.1", 29500, 9, "abc", 1};
    std::map<std::string, std::string> found;
    for (const auto& [name, value] : variablesOf({3, 4, 1, 2, 1, 2}, meeting)) found[name] = value;
    EXPECT_EQ(found["ISTHMUS_RANK"], "3");
    EXPECT_EQ(found["RANK"], "3");
    EXPECT_EQ(found["ISTHMUS_WORLD_SIZE"], "4");
    EXPECT_EQ(found["WORLD_SIZE"], "4");
    EXPECT_EQ(found["ISTHMUS_NODE"], "1");
    EXPECT_EQ(found["GROUP_RANK"], "1");
    EXPECT_EQ(found["LOCAL_RANK"], "1");
    EXPECT_EQ(found["LOCAL_WORLD_SIZE"], "2");
    EXPECT_EQ(found["ISTHMUS_STORE"], "10.77.0.254:4000");
    EXPECT_EQ(found["MASTER_ADDR"], "10.77.0.1");
    EXPECT_EQ(found["MASTER_PORT"], "29500");
    EXPECT_EQ(found["ISTHMUS_JOB_KEY_FD"], "9");
    EXPECT_EQ(found["GLOO_SOCKET_IFNAME"], "eth0");
    EXPECT_EQ(found.count("ISTHMUS_INTERFACE"), 0U);
}

TEST(Variables, NameAllCardsOfANode) {
    MeetingPlace meeting;
    meeting.cards = 3;
    std::map<std::string, std::string> found;
    for (const auto& [name, value] : variablesOf({}, meeting)) found[name] = value;
    EXPECT_EQ(found["ISTHMUS_INTERFACE"], "eth0,eth1,eth2");
    EXPECT_EQ(found["NCCL_SOCKET_IFNAME"], "eth0");
}

TEST(Variables, TellRanksTheirRacks) {
    const auto rackOf = [](const char* nodes, std::size_t rank) {
        const auto spec = NodeSpec::parse(nodes);
        EXPECT_TRUE(spec.ok());
        const auto places = placeRanks(*spec, NodeSpec::Order::kBlock);
        for (const auto& [name, value] : variablesOf(places[rank], {})) {
            if (name == "ISTHMUS_RACK") return value;
        }
        return std::string("none");
    };
    EXPECT_EQ(rackOf("2x1/1x2", 1), "rack0");
    EXPECT_EQ(rackOf("2x1/1x2", 3), "rack1");
    EXPECT_EQ(rackOf("2x2", 3), "none");
}

TEST(OutputLines, GivesWholeLinesHoweverTheyAreCut) {
    OutputLines lines("[1] ");
    EXPECT_EQ(lines.add("one\ntw"), "[1] one\n");
    EXPECT_EQ(lines.add("o"), "");
    EXPECT_EQ(lines.add("\n\nthree\n"), "[1] two\n[1] \n[1] three\n");
    EXPECT_EQ(lines.finish(), "");
    EXPECT_EQ(lines.add("rest"), "");
    EXPECT_EQ(lines.finish(), "[1] rest\n");
}

TEST(OutputLines, TakesACarriageReturnForAnEnd) {
    OutputLines lines("");
    EXPECT_EQ(lines.add("10%\r20%\r"), "10%\n");  // the second may become "\r\n"
    EXPECT_EQ(lines.add("\nnext\r\n"), "20%\nnext\n");
    EXPECT_EQ(lines.add("30%\r"), "");
    EXPECT_EQ(lines.finish(), "30%\n");
}

TEST(OutputLines, CutsALineThatWouldFillMemory) {
    OutputLines lines("> ");
    const std::string much(2 << 20, 'x');
    EXPECT_EQ(lines.add(much), "> " + much + "\n");
    EXPECT_EQ(lines.finish(), "");
}

}  // namespace
}  // namespace isthmus::cli
