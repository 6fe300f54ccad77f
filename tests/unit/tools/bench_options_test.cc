#include "tools/cli/bench_options.hpp"
#include "tools/cli/own_ranks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>

namespace isthmus::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

BenchOptions allReduce() {
    BenchOptions options;
    options.collective = "all_reduce";
    return options;
}

std::string refusalOf(const BenchOptions& options) {
    const Result<BenchTask> task = benchTask(options);
    EXPECT_FALSE(task.ok());
    EXPECT_EQ(task.status().code(), Status::Code::kInvalidArgument);
    return task.status().what();
}

TEST(BenchTask, GrowsByFactorOrByStep) {
    BenchOptions options = allReduce();
    options.minBytes = "8";
    options.maxBytes = "64";
    options.stepFactor = 2;
    EXPECT_THAT(benchTask(options)->sizes, ElementsAre(8, 16, 32, 64));
    options.stepFactor = 0;
    options.stepBytes = "24";
    EXPECT_THAT(benchTask(options)->sizes, ElementsAre(8, 32, 56));
    options.minBytes = "0";
    options.maxBytes = "4";
    options.stepFactor = 2;
    EXPECT_THAT(benchTask(options)->sizes, ElementsAre(0, 1, 2, 4));
}

TEST(BenchTask, EndsAt32MegabytesOnlyWhenSizesMultiply) {
    BenchOptions options = allReduce();
    EXPECT_THAT(benchTask(options)->sizes, ElementsAre(33554432));
    options.minBytes = "1K";
    EXPECT_THAT(benchTask(options)->sizes, ElementsAre(1024));
    options.stepFactor = 32;
    EXPECT_THAT(benchTask(options)->sizes, ElementsAre(1024, 32768, 1048576, 33554432));
}

TEST(BenchTask, RefusesWhatItCannotMean) {
    BenchOptions options = allReduce();
    options.collective = "all_redcue";
    EXPECT_THAT(refusalOf(options), HasSubstr("reduce_scatter"));
    options = allReduce();
    options.isUneven = true;
    EXPECT_THAT(refusalOf(options), HasSubstr("--uneven is for all_to_all, not for all_reduce"));
    options = allReduce();
    options.minBytes = "12x";
    EXPECT_THAT(refusalOf(options), HasSubstr("-b"));
    options = allReduce();
    options.maxBytes = "1K";
    EXPECT_THAT(refusalOf(options), HasSubstr("below"));
    options = allReduce();
    options.stepFactor = 1;
    EXPECT_THAT(refusalOf(options), HasSubstr("grow"));
    options = allReduce();
    options.minBytes = "0";
    options.maxBytes = "1G";
    options.stepBytes = "1";
    EXPECT_THAT(refusalOf(options), HasSubstr("4096"));
    options = allReduce();
    options.algorithm = "rong";
    EXPECT_THAT(refusalOf(options), HasSubstr("two_level_ring"));
    options = allReduce();
    options.type = "f8e4m3";
    EXPECT_THAT(refusalOf(options), HasSubstr("all_reduce: sum is not defined on f8e4m3"));
    options.op = "all";
    EXPECT_THAT(refusalOf(options), HasSubstr("no operation is defined on f8e4m3"));
    options.collective = "all_gather";
    EXPECT_TRUE(benchTask(options).ok());
    options = allReduce();
    options.ranks = 2;
    options.nodes = "2x2";
    EXPECT_THAT(refusalOf(options), HasSubstr("exclude"));
}

TEST(LaunchArguments, StartTheSameBenchmarkInEachRank) {
    BenchOptions options;
    CLI::App app;
    CLI::App* sub = app.add_subcommand("bench", "");
    addBenchOptions(*sub, options);
    std::vector<std::string> line = {"bench",   "all_gather", "--wire", "--rate", "5gbit",
                                     "--nodes", "2x2",        "-n",     "7"};
    std::reverse(line.begin(), line.end());  // CLI11 takes them from the back
    app.parse(line);
    EXPECT_THAT(
        launchArguments(*sub, {"bench", options.collective}, options, "/bin/isthmus"),
        ElementsAre("/bin/isthmus", "run", "--no-prefix", "--nodes", "2x2", "--rate", "5gbit", "--",
                    "/bin/isthmus", "bench", "all_gather", "-n", "7", "--wire", "--rate", "5gbit"));
}

}  // namespace
}  // namespace isthmus::cli
