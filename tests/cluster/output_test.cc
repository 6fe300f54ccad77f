// What the program prints where: nothing, too little room, or to nobody. Needs no privilege.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cluster/program.hpp"

namespace isthmus::test {
namespace {

using testing::HasSubstr;
using testing::Not;

Ended shell(const std::string& arguments) {
    Program program({"sh", "-c", isthmusProgram() + " " + arguments});
    const int code = program.wait();
    return {code, program.output(), program.error()};
}

const char* const kBench = "bench all_reduce --ranks 2 -b 8 -e 8 -n 1 ";

TEST(Output, ThatFindsNoRoomIsAnErrorOfEverySubcommand) {
    const std::string commands[] = {
        "--help",
        "--version",
        "info",
        "info --json",
        "info --options",
        "explain all_reduce",
        "explain all_reduce --dot",
        "cluster status",
        "run -n 2 echo hello",
        kBench,
        std::string(kBench) + "--format json",
        "bench all_reduce -b 8 -e 8 -n 1",
        "tune all_reduce --ranks 2 -e 8",
        "place --axes data=2 --bytes data=1 --nodes 2x1",
    };
    for (const std::string& command : commands) {
        const Ended ended = shell(command + " > /dev/full");
        EXPECT_EQ(ended.exitCode, 2) << command;
        EXPECT_THAT(ended.error, HasSubstr("cannot write the output")) << command;
        EXPECT_THAT(ended.error, Not(HasSubstr("internal"))) << command;
    }
}

TEST(Output, MayBeClosedFromTheStart) {
    for (const std::string closed : {"<&-", ">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-"}) {
        for (const std::string command :
             {"info", "explain all_reduce", "run -n 2 echo hello", kBench}) {
            const Ended ended = shell(command + " " + closed);
            EXPECT_EQ(ended.exitCode, 0) << command << " " << closed << ": " << ended.error;
            EXPECT_EQ(ended.error, "") << command << " " << closed;
        }
    }
}

TEST(Explain, OfOneNodeListsWhatServesTheSize) {
    const Ended small = isthmus({"explain", "all_reduce", "--nodes", "1x4", "--bytes", "64"});
    EXPECT_EQ(small.exitCode, 0) << small.error;
    EXPECT_THAT(small.output, HasSubstr("inline"));
    const Ended large = isthmus({"explain", "all_reduce", "--nodes", "1x4", "--bytes", "1M"});
    EXPECT_EQ(large.exitCode, 0) << large.error;
    EXPECT_THAT(large.output, Not(HasSubstr("inline")));
    EXPECT_EQ(isthmus({"explain", "all_reduce"}).exitCode, 0);  // with what it assumes
    EXPECT_NE(isthmus({"explain", "all_reduce", "--algorithm", "inline"}).exitCode, 0);
}

TEST(Bench, RefusesNoRanks) {
    const Ended ended = isthmus({"bench", "all_reduce", "--ranks", "0"});
    EXPECT_EQ(ended.exitCode, 1);
    EXPECT_THAT(ended.error, HasSubstr("--ranks"));
}

// On one node the choice is direct or inline; whatever the times, the file must be readable. Of an
// all-gather of 8 bytes no rank has an element, as nccl-tests counts: it is no point.
TEST(Tune, TimesEveryAlgorithmAndWritesWhatTheLibraryReads) {
    const Folder folder;
    const std::string file = folder.path() + "/tuned.json";
    const Ended tuned = isthmus({"tune", "all_reduce", "all_gather", "--ranks", "2", "-b", "8",
                                 "-e", "512", "--rounds", "1", "-o", file});
    ASSERT_EQ(tuned.exitCode, 0) << tuned.error;
    EXPECT_THAT(tuned.output, HasSubstr("of 5 choices"));
    const auto document = nlohmann::json::parse(std::ifstream(file));
    EXPECT_EQ(document.at("isthmus_algorithms"), 1);
    ASSERT_EQ(document.at("measured").size(), 5U);
    for (const auto& point : document.at("measured")) {
        EXPECT_TRUE(point.at("microseconds").contains("direct"));
        EXPECT_TRUE(point.at("microseconds").contains("ring"));
        for (const auto& time : point.at("microseconds")) EXPECT_GT(time.get<double>(), 0);
    }
    Program bench({"env", "ISTHMUS_ALGORITHM=" + file, isthmusProgram(), "bench", "all_reduce",
                   "--ranks", "2", "-b", "8", "-e", "8", "-n", "1"});
    EXPECT_EQ(bench.wait(), 0) << bench.error();
}

TEST(Tune, SaysBeforeItMeasuresWhatIsWrong) {
    for (const auto& [arguments, what] :
         {std::pair<std::vector<std::string>, std::string>{{}, "collectives"},
          {{"all_redoce"}, "all_redoce"},
          {{"all_reduce", "--rounds", "0"}, "--rounds"},
          {{"all_reduce", "-f", "0"}, "-f is 2 or more"},
          {{"all_reduce", "-f", "1"}, "-f is 2 or more"},
          {{"all_reduce", "-o", "/no/such/folder/file"}, "/no/such/folder/file"},
          {{"all_reduce", "-b", "x"}, "-b"}}) {
        std::vector<std::string> command = {"tune"};
        command.insert(command.end(), arguments.begin(), arguments.end());
        const Ended ended = isthmus(command);
        EXPECT_EQ(ended.exitCode, 1) << what;
        EXPECT_THAT(ended.error, HasSubstr(what));
    }
}

TEST(Tune, ItsFileIsNamedWhenARankCannotReadIt) {
    Program bench({"env", "ISTHMUS_ALGORITHM=./none.json", isthmusProgram(), "bench", "all_reduce",
                   "--ranks", "2", "-b", "8", "-e", "8", "-n", "1"});
    EXPECT_NE(bench.wait(), 0);
    EXPECT_THAT(bench.error(), HasSubstr("./none.json: No such file"));
}

}  // namespace
}  // namespace isthmus::test
