// A study that somebody has seen enough of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include "tests/cluster/program.hpp"

namespace isthmus::test {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::Not;

// The plans of 16,384 ranks that have a root take half a minute: it is amid one row.
TEST(Interrupt, EndsARowWithinASecondAndKeepsThoseBefore) {
    const Folder folder;
    const std::string file = folder.path() + "/rows.json";
    Program study({SCALE_PROGRAM, "--ranks", "64,16384", "--nodes", "1", "--collectives",
                   "broadcast", "--sizes", "64K", "--topologies", "fat_tree", "--chosen",
                   "--threads", "1", "--json", file});
    ASSERT_TRUE(becomes(
        [&] {
            return study.error().find("16384 ranks, nodes of 1: broadcast two_level_double_tree") !=
                   std::string::npos;
        },
        milliseconds(60000)));
    std::this_thread::sleep_for(milliseconds(200));
    study.signal(SIGINT);
    EXPECT_EQ(study.wait(milliseconds(1000)), 130);
    EXPECT_THAT(study.output(), HasSubstr("two_level_double_tree"));
    std::stringstream json;
    json << std::ifstream(file).rdbuf();
    EXPECT_THAT(json.str(), HasSubstr("\"ranks\": 64"));
    EXPECT_THAT(json.str(), Not(HasSubstr("\"ranks\": 16384")));
}

}  // namespace
}  // namespace isthmus::test
