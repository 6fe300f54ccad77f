// `isthmus place` as people and programs call it. Needs no privilege.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/cluster/program.hpp"

namespace isthmus::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const char* const kAxes = "tensor=2,data=2,pipe=2";
const char* const kBytes = "tensor=3200,data=800,pipe=200";

Ended place(std::vector<std::string> more) {
    more.insert(more.begin(), "place");
    return isthmus(more);
}

json placed(const std::string& nodes, const std::string& axes, const std::string& bytes) {
    const Ended ended = place({"--axes", axes, "--bytes", bytes, "--nodes", nodes, "--json"});
    EXPECT_EQ(ended.exitCode, 0) << ended.error;
    EXPECT_EQ(ended.error, "");
    return json::parse(ended.output);
}

/// A file that goes with its folder.
std::string write(const Folder& folder, const std::string& name, const std::string& text) {
    const std::string path = folder.path() + "/" + name;
    std::ofstream(path) << text;
    return path;
}

// scheduler.md, section 5.
TEST(Place, RawVolumes) {
    const json answer = placed("3+3+2", kAxes, kBytes);
    EXPECT_EQ(answer["max_node_egress"], 5800);
    EXPECT_EQ(answer["sum_node_egress"], 12400);
    EXPECT_EQ(answer["lower_bound"], 5800);
    EXPECT_EQ(answer["optimal"], true);
    EXPECT_EQ(answer["degrees"], (json{{"tensor", 2}, {"data", 2}, {"pipe", 2}}));
    std::map<std::string, int> ranksOfNode;
    for (const json& rank : answer["ranks"]) ++ranksOfNode[rank["node"]];
    EXPECT_EQ(ranksOfNode, (std::map<std::string, int>{{"node0", 3}, {"node1", 3}, {"node2", 2}}));
    bool isThere = false;
    for (const json& order : answer["orders"]) {
        if (order["name"] != "megatron tp-cp-ep-dp-pp") continue;
        isThere = true;
        EXPECT_EQ(order["max_node_egress"], 6200);
        EXPECT_EQ(order["saved_max"], 400);
    }
    EXPECT_TRUE(isThere);
    // Names rule, not positions; short names are names.
    const json again = placed("3+3+2", "pp=2,tp=2,dp=2", "pipe=200,data=800,tensor=3200");
    EXPECT_EQ(again["ranks"], answer["ranks"]);
}

TEST(Place, FreeDegreesTakeWhatCostsLeast) {
    const json answer = placed("2x4", "tensor,data", "tensor=100,data=1");
    EXPECT_EQ(answer["max_node_egress"], 1);  // one ring of all: tensor 4 inside would make four
    EXPECT_EQ(answer["optimal"], true);
}

// scheduler.md 1.1: the announced setting; 8.05 GB leave the hosts in the middle of the pipe.
TEST(Place, AModelSaysTheBytes) {
    const Ended ended = place(
        {"--model", "gpt-13b", "--axes", "tensor=4,data=2,pipe=4", "--nodes", "4x8", "--json"});
    ASSERT_EQ(ended.exitCode, 0) << ended.error;
    const json answer = json::parse(ended.output);
    EXPECT_EQ(answer["max_node_egress"], 8'053'063'680);
    EXPECT_EQ(answer["optimal"], true);
}

TEST(Place, AModelIsCutTimedAndFitted) {
    const std::vector<std::string> words = {"--model", "gpt-13b", "--nodes",  "4x8",
                                            "--rate",  "100gbit", "--memory", "30G"};
    const auto with = [&](std::vector<std::string> more) {
        more.insert(more.begin(), words.begin(), words.end());
        more.push_back("--json");
        const Ended ended = place(more);
        EXPECT_EQ(ended.exitCode, 0) << ended.error;
        return json::parse(ended.output);
    };
    const json bytes = with({"--axes", "tensor,data,pipe"});
    const json time = with({"--axes", "tensor,data,pipe", "--objective", "step_time"});
    const json memory = with({"--axes", "tensor,data,pipe", "--objective", "memory"});
    EXPECT_LE(bytes["max_node_egress"], time["max_node_egress"]);
    EXPECT_LT(time["predicted"]["step_seconds"], bytes["predicted"]["step_seconds"]);
    const auto fullest = [](const json& answer) {
        std::int64_t most = 0;
        for (const json& stage : answer["stages"]) {
            EXPECT_EQ(stage["fits"], true);
            EXPECT_EQ(stage["device_memory_bytes"], std::int64_t{30} << 30);
            most = std::max(most, stage["memory_bytes"].get<std::int64_t>());
        }
        return most;
    };
    EXPECT_LT(fullest(memory), fullest(time));
    EXPECT_EQ(memory["objective"], "memory");
    // 40 layers between an embedding and a head.
    const json cut = with({"--axes", "tensor=8,pipe=4", "--cut", "manual:0,9,20,31"});
    EXPECT_EQ(cut["stages"][1]["layers"].size(), 11U);
    EXPECT_EQ(cut["predicted"]["megatron_layout"], "Et*8|(t*11|)*2t*10L");
    const json even = with({"--axes", "tensor=8,pipe=4", "--cut", "type:transformer"});
    EXPECT_EQ(even["predicted"]["megatron_layout"], "Et*10|(t*10|)*2t*10L");
    const Ended wrong =
        place({"--model", "gpt-13b", "--nodes", "2x2", "--axes", "pipe=4", "--cut", "manual:1,2"});
    EXPECT_EQ(wrong.exitCode, 1);
    EXPECT_THAT(wrong.error, HasSubstr("manual"));
    const Ended unknown = place({"--model", "gpt-13b", "--nodes", "2x2", "--objective", "speed"});
    EXPECT_EQ(unknown.exitCode, 1);
    EXPECT_THAT(unknown.error, HasSubstr("--objective: \"speed\" is none of"));
    const Ended flags = place(
        {"emit", "megatron", "--model", "gpt-13b", "--nodes", "4x8", "--axes", "tensor=8,pipe=4"});
    EXPECT_THAT(flags.output, HasSubstr("--pipeline-model-parallel-layout \"Et*10|"));
}

// 16 bytes a parameter, 12.8 G of them (scheduler.md 4.3): what does not fit is left out or
// refused.
TEST(Place, MemoryLimitsTheDegrees) {
    const Ended refused =
        place({"--model", "gpt-13b", "--axes", "data=32", "--nodes", "4x8", "--memory", "30G"});
    EXPECT_EQ(refused.exitCode, 2);
    EXPECT_THAT(refused.error, HasSubstr("the largest part is optimizer"));
    const Ended free = place({"--model", "gpt-13b", "--axes", "tensor,data,pipe", "--nodes", "4x8",
                              "--memory", "30G", "--json"});
    ASSERT_EQ(free.exitCode, 0) << free.error;
    const json degrees = json::parse(free.output)["degrees"];
    const auto parts = degrees["tensor"].get<double>() * degrees["pipe"].get<double>();
    EXPECT_LE(16 * 12.8e9 / parts, 30.0 * (1 << 30));
}

TEST(Place, RefusesWhatCannotBe) {
    struct Row {
        std::vector<std::string> words;
        int code;
        const char* says;
    };
    const Row rows[] = {
        {{"--axes", "tensor=3,data=2", "--bytes", "tensor=1,data=1", "--nodes", "4+4"},
         2,
         "2 ranks unused"},
        {{"--axes", "tensor=4,data=4", "--bytes", "tensor=1,data=1", "--nodes", "4+4"},
         2,
         "8 devices missing"},
        {{"--axes", "tensr=2", "--bytes", "tensor=1", "--nodes", "2"},
         1,
         "--axes: unknown axis \"tensr\"; known: tensor, context, expert, data, pipe"},
        {{"--axes", "tensor=2,tensor=2", "--bytes", "tensor=1", "--nodes", "2"},
         1,
         "--axes: tensor is there twice"},
        {{"--axes", "tensor=0", "--bytes", "tensor=1", "--nodes", "2"}, 1, "tensor of 0 ways"},
        {{"--axes", "tensor=2", "--bytes", "tensor=-1", "--nodes", "2"}, 1, "--bytes: tensor"},
        {{"--axes", "tensor=2", "--bytes", "tensor=1,data=1", "--nodes", "2"},
         1,
         "data is no axis"},
        {{"--axes", "tensor=2,data=2", "--bytes", "tensor=1", "--nodes", "4"},
         1,
         "--bytes says nothing of data"},
        {{"--axes", "tensor=2", "--bytes", "tensor=1", "--nodes", "2x"}, 1, "MxR"},
        {{"--axes", "tensor=2", "--bytes", "tensor=1"}, 1, "--nodes or --topology is wanted"},
        {{"--axes", "tensor=2", "--bytes", "tensor=1", "--topology", "/nonexistent"},
         6,
         "cannot read /nonexistent"},
        {{"--axis", "tensor=2"}, 1, "did you mean --axes?"},
        {{"explian"}, 1, "did you mean explain?"},
    };
    for (const Row& row : rows) {
        const Ended ended = place(row.words);
        EXPECT_EQ(ended.exitCode, row.code) << row.says;
        EXPECT_THAT(ended.error, HasSubstr(row.says));
        EXPECT_EQ(ended.output, "");
    }
}

TEST(Place, TopologyFilesNameTheirHosts) {
    const Folder folder;
    const std::string good = write(folder, "good.json", R"({"isthmus_topology": 1, "nodes": [
        {"name": "b", "devices": 3}, {"name": "a", "devices": 4, "missing": [0]}, {"name": "c", "devices": 2}]})");
    const Ended ended = place({"--axes", kAxes, "--bytes", kBytes, "--topology", good, "--json"});
    ASSERT_EQ(ended.exitCode, 0) << ended.error;
    const json answer = json::parse(ended.output);
    EXPECT_EQ(answer["max_node_egress"], 5800);
    for (const json& rank : answer["ranks"]) {
        EXPECT_FALSE(rank["node"] == "a" && rank["device"] == 0);
    }
    const std::string wrong = write(folder, "wrong.json", R"({"isthmus_topology": 1, "nodes": [
        {"name": "a", "devices": 0}]})");
    const Ended refused = place({"--axes", kAxes, "--bytes", kBytes, "--topology", wrong});
    EXPECT_EQ(refused.exitCode, 6);
    EXPECT_THAT(refused.error, HasSubstr("nodes[0].devices: is no whole number of 1 to 1024"));
}

TEST(Place, AFileGoesThroughEverySubcommand) {
    const Folder folder;
    const Ended placed = place({"--axes", kAxes, "--bytes", kBytes, "--nodes", "2x4", "--json"});
    const std::string file = write(folder, "placement.json", placed.output);
    const Ended explained = place({"explain", file});
    EXPECT_EQ(explained.exitCode, 0) << explained.error;
    EXPECT_THAT(explained.output, HasSubstr("tensor   0 of 4 groups of 2 are on several nodes"));
    EXPECT_THAT(place({"compare", file}).output, HasSubstr("sagemaker TPD (spread)"));
    EXPECT_THAT(place({"emit", "openmpi", file}).output, HasSubstr("rank 0=node0 slot=0"));
    EXPECT_EQ(place({"emit", "helm", file}).exitCode, 1);

    // The plan has all of a node's ranks in a row here: pipes cross.
    const std::string hosts = write(folder, "hosts", place({"emit", "slurm", file}).output);
    EXPECT_EQ(place({"validate", file, hosts}).exitCode, 0);
    const std::string dealt =
        write(folder, "dealt", "node0\nnode1\nnode0\nnode1\nnode0\nnode1\nnode0\nnode1\n");
    const Ended verdict = place({"validate", file, dealt, "--json"});
    EXPECT_EQ(verdict.exitCode, 5);
    EXPECT_EQ(json::parse(verdict.output)["max_node_egress"], 4 * 3200);

    // Half of the replicas are left on one node.
    const Ended rest = place({"replan", file, "--lost", "node1:0", "--json"});
    ASSERT_EQ(rest.exitCode, 0) << rest.error;
    const json answer = json::parse(rest.output);
    EXPECT_EQ(answer["degrees"], (json{{"tensor", 2}, {"data", 1}, {"pipe", 2}}));
    EXPECT_EQ(answer["max_node_egress"], 0);
    const Ended nothing = place({"replan", file, "--lost", "node0", "--lost", "node1:1"});
    EXPECT_EQ(nothing.exitCode, 2);
    EXPECT_THAT(nothing.error, HasSubstr("3 devices are left"));
    EXPECT_EQ(place({"explain", hosts}).exitCode, 6);
}

// The script as a host runs it, with a torchrun that starts its workers one after another.
TEST(Place, TheScriptForTorchrunGivesEachDeviceItsRank) {
    const Folder folder;
    const Ended emitted =
        place({"emit", "torchrun", "--axes", kAxes, "--bytes", kBytes, "--nodes", "3+3+2"});
    ASSERT_EQ(emitted.exitCode, 0) << emitted.error;
    const std::string script = write(folder, "start.sh", emitted.output);
    const std::string agent = write(folder, "torchrun", R"(#!/bin/sh
echo "$1 $2"
while [ $# -gt 0 ]; do
    case "$1" in --nproc_per_node=*) workers=${1#*=} ;; --*) ;; *) break ;; esac
    shift
done
for worker in $(seq 0 $((workers - 1))); do LOCAL_RANK=$worker "$@"; done
)");
    const std::string program = write(folder, "program", "echo \"rank $RANK of $1\"\n");
    EXPECT_EQ(::chmod(agent.c_str(), 0755), 0);
    std::map<int, int> seen;
    for (const std::string host : {"node0", "node1", "node2"}) {
        Program run({"sh", "-c",
                     "PATH=" + folder.path() + ":$PATH PYTHON=sh host=" + host + " sh " + script +
                         " " + program + " job"});
        ASSERT_EQ(run.wait(), 0) << run.error();
        const std::vector<std::string> lines = linesOf(run.output());
        ASSERT_EQ(lines.size(), host == "node2" ? 3U : 4U) << run.output();
        EXPECT_EQ(lines[0], "--nnodes=3 --node_rank=" + host.substr(4));
        for (std::size_t line = 1; line < lines.size(); ++line) {
            int rank = -1;
            EXPECT_EQ(std::sscanf(lines[line].c_str(), "rank %d of job", &rank), 1) << lines[line];
            ++seen[rank];
        }
    }
    EXPECT_EQ(seen.size(), 8U);
    Program stranger({"sh", "-c", "host=elsewhere sh " + script + " " + program});
    EXPECT_EQ(stranger.wait(), 1);
    EXPECT_THAT(stranger.error(), HasSubstr("no place in the placement"));
}

TEST(Place, AnInterruptTakesTheBestSoFar) {
    // Branch and bound over 32 items that are all alike looks at millions of them.
    Program program({isthmusProgram(), "place", "--axes", "tensor=2,context=2,expert=2,pipe=4",
                     "--bytes", "tensor=987,context=1003,expert=1009,pipe=1021", "--nodes",
                     "11+13+8", "--json"});
    EXPECT_TRUE(becomes([&] { return program.error().find("Ctrl-C") != std::string::npos; },
                        std::chrono::seconds(15)));
    program.signal(SIGINT);
    EXPECT_EQ(program.wait(), 0) << program.error();
    const json answer = json::parse(program.output());
    EXPECT_EQ(answer["ranks"].size(), 32U);
    EXPECT_EQ(answer["search"]["complete"], false);
}

}  // namespace
}  // namespace isthmus::test
