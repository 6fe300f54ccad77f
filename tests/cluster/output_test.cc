// What the program prints where: nothing, too little room, or to nobody. Needs no privilege.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace isthmus::test
