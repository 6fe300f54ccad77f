// Emulated nodes: as root, or where the kernel lets users make namespaces; skipped with the reason
// elsewhere.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "tests/cluster/program.hpp"

namespace isthmus::test {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

std::set<std::string> cardsHere() {
    std::set<std::string> names;
    for (const auto& each : std::filesystem::directory_iterator("/sys/class/net"))
        names.insert(each.path().filename());
    return names;
}

class Cluster : public testing::Test {
protected:
    void SetUp() override {
        static const Ended tried = [] {
            const std::string name = "probe-" + std::to_string(::getpid());
            const Ended up = isthmus({"cluster", "up", "1", "--name", name});
            if (up.exitCode == 0) isthmus({"cluster", "down", "--name", name});
            return up;
        }();
        if (tried.exitCode == 2)
            GTEST_SKIP() << "no emulated nodes on this machine: " << tried.error;
        ASSERT_EQ(tried.exitCode, 0) << tried.error;
        cardsBefore_ = cardsHere();
    }

    void TearDown() override {
        isthmus({"cluster", "down", "--name", name_});
        EXPECT_EQ(cardsHere(), cardsBefore_);
    }

    Ended up(std::vector<std::string> options) {
        options.insert(options.begin(), {"cluster", "up", "--name", name_});
        return isthmus(options);
    }

    Ended exec(int node, const std::string& script) const {
        return isthmus(
            {"cluster", "exec", "--name", name_, std::to_string(node), "--", "sh", "-c", script});
    }

    std::optional<json> status() const {
        const json all = json::parse(isthmus({"cluster", "status", "--json"}).output);
        for (const json& each : all) {
            if (each["name"] == name_) return each;
        }
        return std::nullopt;
    }

    std::vector<pid_t> processes() const {
        std::vector<pid_t> pids;
        const auto now = status();
        if (!now) return pids;
        pids.push_back(now->at("keeper"));
        for (const json& node : now->at("nodes")) pids.push_back(node.at("pid"));
        return pids;
    }

    /// Bits a second that node 1 receives from node 0.
    double measure(const std::string& host, double seconds) const {
        Program receiver({isthmusProgram(), "cluster", "exec", "--name", name_, "1", "--",
                          streamProgram(), "receive", "7000"});
        const Ended sent =
            exec(0, streamProgram() + " send " + host + " 7000 " + std::to_string(seconds));
        EXPECT_EQ(sent.exitCode, 0) << sent.error;
        EXPECT_EQ(receiver.wait(), 0) << receiver.error();
        double bytes = 0;
        double took = 1;
        std::istringstream(receiver.output()) >> bytes >> took;
        return bytes * 8 / took;
    }

    const std::string name_ = "test-" + std::to_string(::getpid());
    std::set<std::string> cardsBefore_;
};

TEST_F(Cluster, EveryIdentityOfANodeIsItsOwn) {
    ASSERT_EQ(up({"--nodes", "2x2"}).exitCode, 0);
    std::vector<std::string> questions = {"hostname",
                                          "cat /proc/sys/kernel/random/boot_id",
                                          "readlink /proc/self/ns/net",
                                          "readlink /proc/self/ns/pid",
                                          "readlink /proc/self/ns/ipc",
                                          "readlink /proc/self/ns/uts"};
    // A node covers what the machine has; containers often have no such file.
    if (std::filesystem::exists("/etc/machine-id")) questions.push_back("cat /etc/machine-id");
    for (const std::string& question : questions) {
        const Ended first = exec(0, question);
        const Ended second = exec(1, question);
        EXPECT_EQ(first.exitCode, 0) << question << first.error;
        EXPECT_NE(first.output, "") << question;
        EXPECT_NE(first.output, second.output) << question;
    }
    EXPECT_EQ(exec(1, "hostname").output, "node1\n");
    EXPECT_EQ(exec(0, "ls /sys/class/net | sort | tr '\\n' ' '").output, "eth0 lo ");
    EXPECT_EQ(exec(0, "cat /proc/sys/net/ipv4/tcp_congestion_control").output, "reno\n");
    EXPECT_THAT(exec(0, "cat /etc/hosts").output, HasSubstr("10.77.0.2 node1\n"));
    EXPECT_EQ(exec(0, "cat /etc/resolv.conf").output, "");
}

TEST_F(Cluster, SharedMemoryIsTheNodesOwnAndOfTheSizeAskedFor) {
    ASSERT_EQ(up({"--nodes", "2", "--shm", "1M"}).exitCode, 0);
    const std::string name = "/dev/shm/" + name_;
    EXPECT_EQ(exec(0, "echo here > " + name + "; cat " + name).output, "here\n");
    EXPECT_NE(exec(1, "test -e " + name).exitCode, 0);
    EXPECT_FALSE(std::filesystem::exists(name));
    EXPECT_EQ(exec(1, "df -k --output=size /dev/shm | tail -1 | tr -d ' '").output, "1024\n");
}

TEST_F(Cluster, ExecPassesFolderArgumentsAndExitCode) {
    ASSERT_EQ(up({"--nodes", "1"}).exitCode, 0);
    EXPECT_EQ(exec(0, "exit 7").exitCode, 7);
    EXPECT_EQ(exec(0, "kill -9 $$").exitCode, 137);
    EXPECT_EQ(exec(0, "pwd").output, std::filesystem::current_path().string() + "\n");
    const Ended echo =
        isthmus({"cluster", "exec", "--name", name_, "node0", "echo", "-a", "--", "b"});
    EXPECT_EQ(echo.output, "-a -- b\n");
    EXPECT_EQ(isthmus({"cluster", "exec", "--name", name_, "0", "no-such-program"}).exitCode, 127);
    EXPECT_EQ(isthmus({"cluster", "exec", "--name", name_, "1", "true"}).exitCode, 1);
}

TEST_F(Cluster, RateIsRightBothWaysAndChangesInPlace) {
    ASSERT_EQ(up({"--nodes", "2", "--rate", "200mbit"}).exitCode, 0);
    EXPECT_NEAR(measure("10.77.0.2", 1.5), 200e6, 20e6);
    const auto before = status();
    EXPECT_GT(before->at("nodes")[0].at("sent_bytes"), 20'000'000);
    EXPECT_GT(before->at("nodes")[1].at("received_bytes"), 20'000'000);

    ASSERT_EQ(isthmus({"cluster", "rate", "--name", name_, "400mbit"}).exitCode, 0);
    EXPECT_NEAR(measure("fd77::2", 1.0), 400e6, 40e6);
    ASSERT_EQ(isthmus({"cluster", "rate", "--name", name_, "100mbit", "--node", "1"}).exitCode, 0);
    EXPECT_NEAR(measure("node1", 1.0), 100e6, 10e6);
    EXPECT_EQ(status()->at("nodes")[0].at("rate"), "400mbit");
    ASSERT_EQ(isthmus({"cluster", "rate", "--name", name_, "none"}).exitCode, 0);
    EXPECT_GT(measure("10.77.0.2", 0.3), 600e6);
}

TEST_F(Cluster, DownEndsAllThatRunsInside) {
    ASSERT_EQ(up({"--nodes", "2"}).exitCode, 0);
    const std::vector<pid_t> before = processes();
    ASSERT_EQ(before.size(), 3U);
    Program inside(
        {isthmusProgram(), "cluster", "exec", "--name", name_, "1", "--", "sleep", "300"});
    exec(0, "setsid sleep 300 > /dev/null 2>&1 &");
    EXPECT_EQ(isthmus({"cluster", "down", "--name", name_}).exitCode, 0);
    for (const pid_t each : before) EXPECT_TRUE(isGone(each));
    EXPECT_EQ(inside.wait(milliseconds(3000)), 137);
    EXPECT_FALSE(status().has_value());
    EXPECT_EQ(isthmus({"cluster", "down", "--name", name_}).exitCode, 1);
}

TEST_F(Cluster, AKilledKeeperTakesEverythingAlongAndTheNameIsFree) {
    ASSERT_EQ(up({"--nodes", "2"}).exitCode, 0);
    EXPECT_EQ(up({"--nodes", "2"}).exitCode, 1);  // the name is taken
    const std::vector<pid_t> before = processes();
    ASSERT_EQ(before.size(), 3U);
    ::kill(before[0], SIGKILL);
    for (const pid_t each : before) EXPECT_TRUE(becomes([each] { return isGone(each); }));
    EXPECT_EQ(status()->at("alive"), false);
    EXPECT_EQ(exec(0, "true").exitCode, 2);
    ASSERT_EQ(up({"--nodes", "1"}).exitCode, 0);
    EXPECT_EQ(exec(0, "hostname").output, "node0\n");
}

TEST_F(Cluster, DownWorksAfterANodeWasKilled) {
    ASSERT_EQ(up({"--nodes", "2"}).exitCode, 0);
    const std::vector<pid_t> before = processes();
    ASSERT_EQ(before.size(), 3U);
    ::kill(before[2], SIGKILL);
    EXPECT_TRUE(becomes([&] { return isGone(before[2]); }));
    EXPECT_EQ(status()->at("nodes")[1].at("alive"), false);
    EXPECT_EQ(exec(0, "hostname").output, "node0\n");
    EXPECT_EQ(isthmus({"cluster", "down", "--name", name_}).exitCode, 0);
    for (const pid_t each : before) EXPECT_TRUE(isGone(each));
}

TEST_F(Cluster, RunPlacesRanksOnNodesAndLeavesNothing) {
    const std::string say =
        "echo $RANK $LOCAL_RANK/$LOCAL_WORLD_SIZE $(hostname) $ISTHMUS_NODE $GLOO_SOCKET_IFNAME";
    Program program({isthmusProgram(), "run", "--nodes", "3+2+1", "--order", "round-robin",
                     "--no-prefix", "--", "sh", "-c", say});
    EXPECT_EQ(program.wait(), 0) << program.error();
    EXPECT_THAT(
        linesOf(program.output()),
        UnorderedElementsAre("0 0/3 node0 0 eth0", "1 0/2 node1 1 eth0", "2 0/1 node2 2 eth0",
                             "3 1/3 node0 0 eth0", "4 1/2 node1 1 eth0", "5 2/3 node0 0 eth0"));
    const std::string record = "run-" + std::to_string(program.pid());
    const json left = json::parse(isthmus({"cluster", "status", "--json"}).output);
    for (const json& each : left) EXPECT_NE(each["name"], record);
}

// https://github.com/NVIDIA/nccl/pull/156, https://github.com/aws-samples/aws-do-eks/pull/69: both
// nodes have one name, which means loopback on each. Whose memory can be shared is proven, and
// peers are told the address of the card.
TEST_F(Cluster, NodesOfOneNameThatMeansLoopbackFindEachOther) {  // BOOT-01, BOOT-06
    const std::string script =
        "hostname worker; grep -q 10.77.0.1 /etc/hosts && echo 127.0.1.1 worker >>/etc/hosts; "
        "getent hosts worker | head -n 1; exec " +
        isthmusProgram() + " bench all_reduce -b 1M -e 1M";
    Program program(
        {isthmusProgram(), "run", "--nodes", "2x2", "--no-prefix", "--", "sh", "-c", script});
    EXPECT_EQ(program.wait(), 0) << program.error();
    int onNode[2] = {0, 0};
    int loopbacks = 0;
    for (const std::string& line : linesOf(program.output())) {
        if (line.find("127.0.1.1") == 0) ++loopbacks;
        if (line.find(" on     worker ") == line.npos) continue;
        ++onNode[line.find(" node 1") == line.npos ? 0 : 1];
    }
    EXPECT_EQ(loopbacks, 4) << program.output();
    EXPECT_EQ(onNode[0], 2) << program.output();
    EXPECT_EQ(onNode[1], 2) << program.output();
    EXPECT_THAT(program.output(), HasSubstr("# Out of bounds values : 0 OK"));
}

// A system fresh from debootstrap has no such file. 77 where the kernel lays no folder over
// another.
TEST_F(Cluster, NodesFindEachOtherByNameWhereTheSystemHasNoHostsFile) {
    const Folder folder;
    const std::string script =
        "mount -t tmpfs tmpfs " + folder.path() + " && cd " + folder.path() +
        " && mkdir up work && "
        "mount -t overlay -o lowerdir=/etc,upperdir=$PWD/up,workdir=$PWD/work overlay /etc && "
        "rm -f /etc/hosts || exit 77; " +
        isthmusProgram() +
        " run --nodes 2x1 --no-prefix -- getent hosts node1 && "
        "! ls /etc/hosts";
    Program program({"unshare", "--mount", "sh", "-c", script});
    const int code = program.wait();
    if (code == 77) GTEST_SKIP() << "no folder can be laid over /etc here: " << program.error();
    EXPECT_EQ(code, 0) << program.error();
    const auto lines = linesOf(program.output());
    EXPECT_EQ(lines.size(), 2U) << program.output();
    for (const std::string& line : lines) EXPECT_THAT(line, HasSubstr("node1"));
}

TEST_F(Cluster, RunUsesNodesThatAreUp) {
    ASSERT_EQ(up({"--nodes", "2x1"}).exitCode, 0);
    const Ended ended = isthmus({"run", "--on", name_, "--no-prefix", "--", "hostname"});
    EXPECT_THAT(linesOf(ended.output), UnorderedElementsAre("node0", "node1"));
    EXPECT_EQ(status()->at("alive"), true);
    EXPECT_EQ(isthmus({"run", "--on", name_, "--nodes", "3x1", "true"}).exitCode, 1);
}

TEST_F(Cluster, AKilledLauncherLeavesNoNodeNoRankAndNoRecord) {
    Program program({isthmusProgram(), "run", "--nodes", "2x1", "--", "sh", "-c",
                     "echo ready; exec sleep 300"});
    const std::string record = "run-" + std::to_string(program.pid());
    ASSERT_TRUE(becomes([&] { return linesOf(program.output()).size() == 2; }));
    std::vector<pid_t> pids;
    for (const json& each : json::parse(isthmus({"cluster", "status", "--json"}).output)) {
        if (each["name"] != record) continue;
        pids.push_back(each["keeper"]);
        for (const json& node : each["nodes"]) pids.push_back(node["pid"]);
    }
    ASSERT_EQ(pids.size(), 3U);
    program.signal(SIGKILL);
    program.wait();
    for (const pid_t each : pids) EXPECT_TRUE(becomes([each] { return isGone(each); }));
    EXPECT_TRUE(becomes([&] {
        const std::string all = isthmus({"cluster", "status"}).output;
        return all.find(record) == all.npos;
    }));
}

TEST_F(Cluster, RefusesWhatItDoesNotUnderstand) {
    EXPECT_EQ(up({"--nodes", "0"}).exitCode, 1);
    EXPECT_EQ(up({"--nodes", "500x1"}).exitCode, 1);
    EXPECT_EQ(up({"--nodes", "2", "--rate", "quick"}).exitCode, 1);
    EXPECT_EQ(up({"--nodes", "2", "--mtu", "100"}).exitCode, 1);
    EXPECT_EQ(isthmus({"cluster", "up", "2", "--name", "../x"}).exitCode, 1);
    EXPECT_EQ(isthmus({"cluster", "rate", "--name", "not-" + name_, "1gbit"}).exitCode, 1);
    EXPECT_EQ(isthmus({"cluster"}).exitCode, 1);
    // A cable is cut while nodes are up; a node without one would be another node.
    for (const std::vector<std::string>& made :
         {std::vector<std::string>{"cluster", "up", "2", "--name", name_},
          {"run", "--nodes", "2x1"},
          {"bench", "all_reduce", "--nodes", "2x1"}}) {
        std::vector<std::string> words = made;
        words.insert(words.end(), {"--rate", "1gbit+cut"});
        if (made[0] == "run") words.insert(words.end(), {"--", "true"});
        const Ended ended = isthmus(words);
        EXPECT_EQ(ended.exitCode, 1) << made[0];
        EXPECT_THAT(ended.error, HasSubstr("`isthmus cluster rate` cuts")) << made[0];
    }
}

}  // namespace
}  // namespace isthmus::test
