// `isthmus run` on this node alone: needs no privilege.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cluster/program.hpp"

namespace isthmus::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

Ended runRanks(int ranks, const std::string& script, std::vector<std::string> options = {}) {
    options.insert(options.begin(), {"run", "-n", std::to_string(ranks)});
    options.insert(options.end(), {"--", "sh", "-c", script});
    return isthmus(options);
}

/// A launcher of two ranks that have said that they are ready.
std::vector<std::string> launching(const std::string& script,
                                   std::vector<std::string> options = {}) {
    std::vector<std::string> words{isthmusProgram(), "run", "-n", "2"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "sh", "-c", script});
    return words;
}

bool bothSaid(const Program& program, const std::string& word) {
    return becomes([&] {
        const std::string output = program.output();
        return output.find("[0] " + word) != output.npos &&
               output.find("[1] " + word) != output.npos;
    });
}

TEST(Run, PassesTheFirstBadExitStatusOn) {
    EXPECT_EQ(runRanks(3, "exit 0").exitCode, 0);
    EXPECT_EQ(runRanks(3, "test $RANK != 2 || exit 9").exitCode, 9);
    EXPECT_EQ(isthmus({"run", "-n", "2", "no-such-program"}).exitCode, 127);
    EXPECT_EQ(isthmus({"run", "-n", "2", "/etc/passwd"}).exitCode, 126);
}

TEST(Run, NamesTheDeadRankLastAndEndsTheOthers) {
    const auto start = steady_clock::now();
    const Ended ended =
        runRanks(3, "echo started >&2; if [ $RANK = 1 ]; then kill -9 $$; fi; exec sleep 100");
    EXPECT_EQ(ended.exitCode, 128 + SIGKILL);
    ASSERT_FALSE(linesOf(ended.error).empty());
    const std::string last = linesOf(ended.error).back();
    EXPECT_THAT(last, HasSubstr("isthmus run: rank 1 (pid "));
    EXPECT_THAT(last, HasSubstr("was killed by signal 9"));
    EXPECT_LT(steady_clock::now() - start, milliseconds(4000));  // SIGTERM was enough
}

TEST(Run, KillsWhatIgnoresTheRequestToEnd) {
    const auto start = steady_clock::now();
    const Ended ended = runRanks(
        2,
        "trap '' TERM; if [ $RANK = 0 ]; then sleep 0.3; exit 5; fi; while :; do sleep 0.1; done",
        {"--grace", "0.3"});
    EXPECT_EQ(ended.exitCode, 5);
    const auto took = steady_clock::now() - start;
    EXPECT_GE(took, milliseconds(600));
    EXPECT_LT(took, milliseconds(4500));
}

TEST(Run, GivesUpAtTheLimit) {
    const Ended ended = runRanks(2, "exec sleep 100", {"--limit", "0.3"});
    EXPECT_EQ(ended.exitCode, 4);
    EXPECT_THAT(ended.error, HasSubstr("ranks 0, 1 of 2 were still running"));
}

TEST(Run, ForwardsSignals) {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) {
        Program program(launching(
            "trap 'echo got; exit 0' INT TERM HUP USR1; echo ready; while :; do sleep 0.05; done"));
        ASSERT_TRUE(bothSaid(program, "ready"));
        program.signal(signal);
        EXPECT_EQ(program.wait(), 0) << signal;
        EXPECT_TRUE(bothSaid(program, "got")) << signal;
    }
}

TEST(Run, ASecondInterruptKills) {
    Program program(launching("trap 'echo no' INT; echo ready; while :; do sleep 0.05; done"));
    ASSERT_TRUE(bothSaid(program, "ready"));
    program.signal(SIGINT);
    ASSERT_TRUE(bothSaid(program, "no"));
    program.signal(SIGINT);
    EXPECT_EQ(program.wait(milliseconds(3000)), 128 + SIGINT);
}

TEST(Run, NeverTearsALine) {
    const std::string script =
        "awk 'BEGIN { for (i = 0; i < 400; i++) { printf \"%s:\", ENVIRON[\"RANK\"];"
        " for (j = 0; j < i; j++) printf \"x\"; printf \":%d\\n\", i } }'";
    const Ended ended = runRanks(4, script);
    ASSERT_EQ(ended.exitCode, 0);
    std::vector<int> seen(4, 0);
    for (const std::string& line : linesOf(ended.output)) {
        const int rank = line.size() > 4 ? line[1] - '0' : -1;
        ASSERT_TRUE(rank >= 0 && rank < 4) << line;
        const int number = seen[static_cast<std::size_t>(rank)]++;
        EXPECT_EQ(line, "[" + std::to_string(rank) + "] " + std::to_string(rank) + ":" +
                            std::string(static_cast<std::size_t>(number), 'x') + ":" +
                            std::to_string(number));
    }
    EXPECT_THAT(seen, testing::Each(400));
}

TEST(Run, KeepsTheStreamsApartAndEndsTheLastLine) {
    const Ended ended = runRanks(2, "printf out$RANK; printf err$RANK >&2");
    EXPECT_THAT(linesOf(ended.output), UnorderedElementsAre("[0] out0", "[1] out1"));
    EXPECT_THAT(linesOf(ended.error), UnorderedElementsAre("[0] err0", "[1] err1"));
    EXPECT_EQ(runRanks(1, "printf plain", {"--no-prefix"}).output, "plain\n");
}

TEST(Run, GivesEachRankItsPlaceInBothVocabularies) {
    const Ended ended = runRanks(
        2,
        "echo $ISTHMUS_RANK $ISTHMUS_WORLD_SIZE $ISTHMUS_LOCAL_RANK $ISTHMUS_LOCAL_WORLD_SIZE "
        "$ISTHMUS_NODE; echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $GROUP_RANK "
        "$MASTER_ADDR; wc -c < /proc/self/fd/$ISTHMUS_JOB_KEY_FD");
    EXPECT_THAT(
        linesOf(ended.output),
        UnorderedElementsAre("[0] 0 2 0 2 0", "[1] 1 2 1 2 0", "[0] 0 2 0 2 0 127.0.0.1",
                             "[1] 1 2 1 2 0 127.0.0.1", testing::MatchesRegex("\\[0\\] (32|64)"),
                             testing::MatchesRegex("\\[1\\] (32|64)")));
}

TEST(Run, HidesTheVariablesOfTheLauncherItWasStartedBy) {
    Program program({"env", "SLURM_PROCID=7", "SLURM_NTASKS=8", "OMPI_COMM_WORLD_RANK=3",
                     isthmusProgram(), "run", "-n", "1", "--no-prefix", "--", "sh", "-c",
                     "echo \"$SLURM_PROCID$SLURM_NTASKS$OMPI_COMM_WORLD_RANK.\""});
    EXPECT_EQ(program.wait(), 0);
    EXPECT_EQ(program.output(), ".\n");
}

TEST(Run, LeavesNothingBehindAfterAKilledLauncher) {
    const Folder folder;
    // A rank, a child in its group, and one that went its own way.
    const std::string script =
        "sleep 300 & setsid sleep 300 & setsid sh -c 'echo $$; exec sleep 300' >> " +
        folder.path() + "/$RANK & sleep 0.2; echo $$ >> " + folder.path() + "/$RANK; echo $! >> " +
        folder.path() + "/$RANK; echo ready; wait";
    Program program(launching(script));
    ASSERT_TRUE(bothSaid(program, "ready"));
    std::vector<pid_t> processes = folder.numbersIn("0");
    for (const pid_t each : folder.numbersIn("1")) processes.push_back(each);
    ASSERT_GE(processes.size(), 6U);
    for (const pid_t each : processes) EXPECT_FALSE(isGone(each));
    program.signal(SIGKILL);
    program.wait();
    for (const pid_t each : processes)
        EXPECT_TRUE(becomes([each] { return isGone(each); })) << each;
}

TEST(Run, EndsProcessesThatRanksLeaveBehind) {
    const Folder folder;
    const Ended ended =
        runRanks(1, "setsid sh -c 'echo $$; exec sleep 300' > " + folder.path() + "/0 & sleep 0.3");
    EXPECT_EQ(ended.exitCode, 0);
    ASSERT_EQ(folder.numbersIn("0").size(), 1U);
    EXPECT_TRUE(becomes([&] { return isGone(folder.numbersIn("0")[0]); }));
}

TEST(Run, RefusesWhatItDoesNotUnderstand) {
    for (const std::vector<std::string>& wrong : std::vector<std::vector<std::string>>{
             {"run"},
             {"run", "true"},
             {"run", "-n", "2"},
             {"run", "-n", "0", "true"},
             {"run", "-n", "2x", "true"},
             {"run", "--nodes", "2y2", "true"},
             {"run", "--nodes", "2x2", "--rate", "fast", "true"},
             {"run", "--nodes", "2x2", "--order", "random", "true"},
             {"run", "-n", "2", "--nodes", "2x2", "true"},
             {"run", "-n", "2", "--rate", "1gbit", "true"}}) {
        const Ended ended = isthmus(wrong);
        EXPECT_EQ(ended.exitCode, 1) << wrong.back();
        EXPECT_FALSE(ended.error.empty());
        EXPECT_EQ(ended.output, "");
    }
    EXPECT_THAT(isthmus({"run", "--nods", "2x2", "true"}).error,
                HasSubstr("did you mean --nodes?"));
    EXPECT_THAT(isthmus({"clustr"}).error, HasSubstr("did you mean cluster?"));
}

TEST(Info, TellsTheMachineAndTheOptionsAsJson) {
    const nlohmann::json facts =
        nlohmann::json::parse(isthmus({"info", "--json"}).output, nullptr, false);
    ASSERT_TRUE(facts.is_object());
    for (const char* member : {"version", "node", "transports", "launch", "versions", "options"}) {
        EXPECT_TRUE(facts.contains(member)) << member;
    }
    const Ended list = isthmus({"info", "--options"});
    EXPECT_EQ(list.exitCode, 0);
    // One of each table that the library reads.
    for (const char* name : {"ISTHMUS_INTERFACE", "ISTHMUS_ARENA", "ISTHMUS_TCP_CONGESTION",
                             "ISTHMUS_SEGMENT", "ISTHMUS_TIMEOUT", "ISTHMUS_SHM", "ISTHMUS_LOG"}) {
        EXPECT_THAT(list.output, HasSubstr(name));
    }
    EXPECT_EQ(isthmus({"--version"}).output,
              "isthmus " + facts["version"].get<std::string>() + "\n");
}

TEST(Info, RefusesAValueOfAWrongFormAndNamesWhatIsUnknown) {
    Program wrong({"env", "ISTHMUS_WINDOW=abc", isthmusProgram(), "info"});
    EXPECT_EQ(wrong.wait(), 6);
    EXPECT_THAT(wrong.error(), testing::AllOf(HasSubstr("ISTHMUS_WINDOW"), HasSubstr("abc")));
    Program unknown({"env", "ISTHMUS_INTERFAC=eth0", isthmusProgram(), "info", "--options"});
    EXPECT_EQ(unknown.wait(), 0);
    EXPECT_THAT(unknown.error(), HasSubstr("did you mean ISTHMUS_INTERFACE?"));
}

}  // namespace
}  // namespace isthmus::test
