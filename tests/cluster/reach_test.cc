// What leads from rank to rank: `isthmus info --cluster`, and jobs whose ranks differ in it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cluster/program.hpp"

namespace isthmus::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

/// Ranks of four nodes: 1 is told to use TCP alone, 2 has no UCX.
const std::string kMixed =
    "case $RANK in 1) export ISTHMUS_TRANSPORTS=shm,tcp;; "
    "2) export ISTHMUS_UCX_LIBRARY=libnone.so;; esac; exec ";

bool hasUcx() {
    const json facts = json::parse(isthmus({"info", "--json"}).output);
    for (const json& each : facts["transports"]) {
        if (each["name"] == "ucx") return each["usable"];
    }
    return false;
}

class Reach : public testing::Test {
protected:
    void SetUp() override {
        const Ended tried = isthmus({"run", "--nodes", "1+1", "--", "true"});
        if (tried.exitCode == 2) GTEST_SKIP() << "no emulated nodes here: " << tried.error;
    }

    /// A shell command as each rank, one a node.
    static Ended onNodes(const std::string& nodes, const std::string& transports,
                         const std::string& command) {
        return isthmus({"run", "--no-prefix", "--nodes", nodes, "--", "env",
                        "ISTHMUS_TRANSPORTS=" + transports, "sh", "-c", command});
    }
    static json surveyOn(const std::string& nodes, const std::string& transports,
                         const std::string& before) {
        const Ended ended =
            onNodes(nodes, transports, before + isthmusProgram() + " info --cluster --json");
        EXPECT_EQ(ended.exitCode, 0) << ended.error;
        return json::parse(ended.output, nullptr, false);
    }
    static json wayOf(const json& pair, const std::string& transport) {
        for (const json& way : pair["ways"]) {
            if (way["transport"] == transport) return way;
        }
        return json::object();
    }
    static std::string whyOf(const json& pair, const std::string& transport) {
        return wayOf(pair, transport).value("why", "not there");
    }
};

TEST_F(Reach, OfTwoNodesIsMeasuredPairByPair) {
    const Ended ended = isthmus({"info", "--cluster", "--nodes", "2x2", "--json"});
    ASSERT_EQ(ended.exitCode, 0) << ended.error;
    const json reach = json::parse(ended.output);
    EXPECT_EQ(reach["ranks"].size(), 4U);
    ASSERT_EQ(reach["pairs"].size(), 6U);
    for (const json& pair : reach["pairs"]) {
        const bool isOneNode = pair["ranks"] == json({0, 1}) || pair["ranks"] == json({2, 3});
        EXPECT_EQ(pair["one_node"], isOneNode);
        EXPECT_EQ(pair["chosen"], isOneNode ? "shm" : "tcp");
        const json used = wayOf(pair, pair["chosen"]);
        EXPECT_EQ(used["proved"], true);
        EXPECT_GT(used["latency_seconds"], 1e-8);
        EXPECT_LT(used["latency_seconds"], 1e-2);
        EXPECT_GT(used["bytes_per_second"], 1e7);
    }
    const Ended text = isthmus({"info", "--cluster", "--ranks", "2"});
    EXPECT_EQ(text.exitCode, 0) << text.error;
    EXPECT_THAT(text.output, AllOf(HasSubstr("1 pair inside a node: 0-1"), HasSubstr("* shm"),
                                   HasSubstr("it comes after shm")));
    EXPECT_EQ(isthmus({"info", "--ranks", "2"}).exitCode, 1) << "without --cluster";
}

TEST_F(Reach, ARateThatIsShapedIsFound) {
    const Ended ended =
        isthmus({"info", "--cluster", "--nodes", "1+1", "--rate", "400mbit", "--json"});
    ASSERT_EQ(ended.exitCode, 0) << ended.error;
    const json reach = json::parse(ended.output);
    const double rate = wayOf(reach["pairs"][0], "tcp")["bytes_per_second"];
    EXPECT_NEAR(rate, 400e6 / 8, 400e6 / 8 / 5);
}

TEST_F(Reach, APairUsesTheFirstThatBothHave) {
    if (!hasUcx()) GTEST_SKIP() << "no UCX on this machine";
    const json reach = surveyOn("1+1+1+1", "shm,ucx@tcp,tcp", kMixed);
    for (const json& pair : reach["pairs"]) {
        const bool isPlain = pair["ranks"] == json({0, 3});
        EXPECT_EQ(pair["chosen"], isPlain ? "ucx" : "tcp") << pair["ranks"];
        EXPECT_EQ(whyOf(pair, "tcp"), isPlain ? "it comes after ucx" : "");
    }
    EXPECT_THAT(whyOf(reach["pairs"][0], "ucx"), HasSubstr("rank 1 (node1 pid"));
    EXPECT_THAT(whyOf(reach["pairs"][1], "ucx"),
                AllOf(HasSubstr("rank 2 (node2 pid"), HasSubstr("libnone.so")));
    const Ended bench = onNodes("1+1+1+1", "shm,ucx@tcp,tcp",
                                kMixed + isthmusProgram() + " bench all_reduce -b 1M -n 3 -c 1");
    EXPECT_EQ(bench.exitCode, 0) << bench.error;
    EXPECT_THAT(bench.output, HasSubstr("Out of bounds values : 0 OK"));
    EXPECT_THAT(bench.error, HasSubstr("tcp with ranks 0, 2, 3, not ucx: rank 1 (node1 pid"));
}

TEST_F(Reach, WhatDoesNotLeadThereIsNotUsed) {
    if (!hasUcx()) GTEST_SKIP() << "no UCX on this machine";
    const json reach = surveyOn("1+1", "shm,ucx@posix,tcp", "exec ");
    ASSERT_EQ(reach["pairs"].size(), 1U);
    EXPECT_EQ(reach["pairs"][0]["chosen"], "tcp");
    EXPECT_EQ(wayOf(reach["pairs"][0], "ucx")["proved"], false);
    EXPECT_THAT(whyOf(reach["pairs"][0], "ucx"), HasSubstr("no way to that process"));
    const Ended bench = onNodes("1+1", "shm,ucx@posix,tcp",
                                "exec " + isthmusProgram() + " bench all_reduce -b 1M -n 3 -c 1");
    EXPECT_EQ(bench.exitCode, 0) << bench.error;
    EXPECT_THAT(bench.error, HasSubstr("between nodes: tcp with rank 1"));
}

TEST_F(Reach, AHostWithMoreCardsSaysWhichAreUsed) {
    const Ended bench =
        isthmus({"run", "--no-prefix", "--nodes", "1+1", "--rate", "1gbit+1gbit", "--", "sh", "-c",
                 "if [ $RANK = 1 ]; then export ISTHMUS_TRANSPORTS=shm,tcp@eth0; fi; exec " +
                     isthmusProgram() + " bench all_reduce -b 1M -n 3 -c 1"});
    EXPECT_EQ(bench.exitCode, 0) << bench.error;
    EXPECT_THAT(bench.error,
                AllOf(HasSubstr("rank 0"), HasSubstr("2 cards here, 1 at rank 1 (node1"),
                      HasSubstr("as many lead there as both have")));
    const Ended wrong = isthmus({"run", "--no-prefix", "--nodes", "1+1", "--", "env",
                                 "ISTHMUS_TRANSPORTS=shm,tcp@nope", isthmusProgram(), "bench",
                                 "all_reduce", "-b", "1M", "-n", "1"});
    EXPECT_EQ(wrong.exitCode, 6) << wrong.error;
    EXPECT_THAT(wrong.error, HasSubstr("no interface or address here matches \"nope\""));
}

TEST_F(Reach, RanksWithNothingInCommonAreNamed) {
    if (!hasUcx()) GTEST_SKIP() << "no UCX on this machine";
    const std::string before = "if [ $RANK = 1 ]; then export ISTHMUS_TRANSPORTS=tcp; fi; exec ";
    const Ended survey = onNodes("1+1", "ucx@tcp", before + isthmusProgram() + " info --cluster");
    EXPECT_EQ(survey.exitCode, 2) << survey.error;
    EXPECT_THAT(survey.output, HasSubstr("nothing leads there"));
    const Ended bench =
        onNodes("1+1", "ucx@tcp", before + isthmusProgram() + " bench all_reduce -b 1M -n 1");
    EXPECT_EQ(bench.exitCode, 6) << bench.error;
    EXPECT_THAT(bench.error, AllOf(HasSubstr("rank 0 (node0 pid"), HasSubstr("has ucx"),
                                   HasSubstr("rank 1 (node1 pid"), HasSubstr("has tcp")));
}

}  // namespace
}  // namespace isthmus::test
