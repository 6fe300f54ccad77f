#include "tools/cli/bench_format.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tools/cli/bench_json.hpp"

namespace isthmus::cli {
namespace {

BenchRow sampleRow() {
    BenchRow row;
    row.sizeBytes = 1048576;
    row.blockBytes = 1048576;
    row.elements = 262144;
    row.type = "float";
    row.op = "sum";
    row.iterations = 20;
    row.outOfPlace.seconds = 104.857e-6;
    row.outOfPlace.algorithmBytesPerSecond = 10e9;
    row.outOfPlace.busBytesPerSecond = 15e9;
    row.outOfPlace.wrong = 0;
    row.inPlace.seconds = 12345678e-6;
    row.inPlace.algorithmBytesPerSecond = 0.001e9;
    row.inPlace.busBytesPerSecond = 123456e9;
    return row;
}

// The rule of nccl-tests: 2, 1, 0 decimals, then an exponent.
TEST(Fitted, GivesAsManyDecimalsAsFit) {
    EXPECT_EQ(fitted(0, 7), "   0.00");
    EXPECT_EQ(fitted(0.994, 6), "  0.99");
    EXPECT_EQ(fitted(10.919, 7), "  10.92");
    EXPECT_EQ(fitted(9999.99, 7), "9999.99");
    EXPECT_EQ(fitted(10000, 7), "10000.0");
    EXPECT_EQ(fitted(123456, 7), " 123456");
    EXPECT_EQ(fitted(1234567, 7), "1234567");
    EXPECT_EQ(fitted(12345678, 7), "1.2e+07");
    EXPECT_EQ(fitted(999.5, 6), "999.50");
    EXPECT_EQ(fitted(1000, 6), "1000.0");
    EXPECT_EQ(fitted(12345, 6), " 12345");
    EXPECT_EQ(fitted(12345678, 6), " 1e+07");
}

// "%12li  %12li  %8s  %6s  %6s" and twice "  %7s  %6s  %6s  %6g" (or "    N/A").
TEST(NcclRow, IsTheirsToTheByte) {
    EXPECT_EQ(rowText(BenchFormat::kNccl, {}, sampleRow()),
              "     1048576        262144     float     sum      -1"
              "   104.86   10.00   15.00       0"
              "  1.2e+07    0.00  123456    N/A\n");
}

TEST(NcclHead, StandsOverTheColumns) {
    BenchHead head;
    head.collective = "all_reduce";
    head.version = "0.1.0";
    head.minBytes = 8;
    head.maxBytes = 1024;
    head.stepFactor = 2;
    head.iterations = 20;
    head.warmups = 1;
    head.checks = 1;
    head.ranks = {{0, 4242, 0, 0, "alpha"}, {1, 17, 1, 0, "beta"}};
    EXPECT_EQ(
        headText(BenchFormat::kNccl, head),
        "# isthmus version 0.1.0, columns of nccl-tests 2.19.6\n"
        "# Collective test starting: all_reduce\n"
        "# nThread 1 nGpus 1 minBytes 8 maxBytes 1024 step: 2(factor) warmup iters: 1 iters: "
        "20 agg iters: 1 validation: 1 graph: 0 unalign: 0\n"
        "#\n"
        "# Using devices\n"
        "#  Rank  0 Group  0 Pid   4242 on      alpha device  0 [0000:00:00] node 0\n"
        "#  Rank  1 Group  0 Pid     17 on       beta device  0 [0000:00:00] node 1\n"
        "#\n"
        "#                                                              out-of-place          "
        "             in-place          \n"
        "#       size         count      type   redop    root     time   algbw   busbw  "
        "#wrong     time   algbw   busbw  #wrong \n"
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)      "
        "       (us)  (GB/s)  (GB/s)         \n");
}

TEST(NcclFoot, CountsWrongValuesAndAveragesBandwidth) {
    BenchHead head;
    head.collective = "all_reduce";
    BenchRow row = sampleRow();
    row.inPlace.busBytesPerSecond = 5e9;
    EXPECT_EQ(footText(BenchFormat::kNccl, head, {row}, ""),
              "# Out of bounds values : 0 OK\n"
              "# Avg bus bandwidth    : 10 \n"
              "#\n"
              "# Collective test concluded: all_reduce\n");
    row.inPlace.wrong = 7;
    EXPECT_EQ(wrongOf({row, row}), 14u);
    EXPECT_NE(footText(BenchFormat::kNccl, head, {row}, "").find(": 7 FAILED"), std::string::npos);
}

TEST(OsuRow, HasOneBlockAsItsSize) {
    BenchRow row = sampleRow();
    row.blockBytes = 4096;
    BenchHead head;
    head.collective = "all_gather";
    EXPECT_EQ(rowText(BenchFormat::kOsu, head, row), "4096                    104.86\n");
    EXPECT_EQ(headText(BenchFormat::kOsu, head),
              "# isthmus Allgather Latency Test, columns of OSU v7.4\n"
              "# Size         Avg Latency(us)\n");
}

TEST(Json, HasTheirFieldsAndTheWire) {
    BenchRow row = sampleRow();
    row.outOfPlace.wire = WireResult{1048576, 1000000, 100e-6, 0.9537};
    row.inPlace.wire = WireResult{5, 0, {}, {}};
    BenchHead head;
    head.collective = "all_reduce";
    head.hasWire = true;
    const auto json =
        nlohmann::json::parse(footText(BenchFormat::kJson, head, {row}, "2025-01-31 12:00:00"));
    const auto& result = json["results"][0];
    EXPECT_EQ(result["size"], 1048576);
    EXPECT_EQ(result["count"], 262144);
    EXPECT_EQ(result["out_of_place"]["wire_bytes"], 1048576);
    EXPECT_EQ(result["out_of_place"]["wire_bound_bytes"], 1000000);
    EXPECT_DOUBLE_EQ(result["out_of_place"]["bound_time"], 100.0);
    EXPECT_DOUBLE_EQ(result["out_of_place"]["of_bound"], 0.9537);
    EXPECT_NEAR(result["out_of_place"]["time"], 104.857, 1e-9);
    EXPECT_DOUBLE_EQ(result["out_of_place"]["bus_bw"], 15.0);
    EXPECT_EQ(result["out_of_place"]["nwrong"], 0);
    EXPECT_TRUE(result["in_place"]["of_bound"].is_null());
    EXPECT_TRUE(result["in_place"]["nwrong"].is_null());
    EXPECT_EQ(json["out_of_bounds"]["okay"], "true");
    EXPECT_EQ(json["end_time"], "2025-01-31 12:00:00");
}

TEST(Csv, HasALineForEachHalf) {
    EXPECT_EQ(rowText(BenchFormat::kCsv, {}, sampleRow()),
              "1048576,262144,float,sum,-1,out_of_place,104.857,10.000000,15.000000,0\n"
              "1048576,262144,float,sum,-1,in_place,12345678.000,0.001000,123456.000000,\n");
}

TEST(IterationStats, OfTenKnownTimes) {
    const IterationStats stats = statsOf({10, 1, 2, 3, 4, 5, 6, 7, 8, 9});
    EXPECT_DOUBLE_EQ(stats.least, 1);
    EXPECT_DOUBLE_EQ(stats.most, 10);
    EXPECT_DOUBLE_EQ(stats.mean, 5.5);
    EXPECT_DOUBLE_EQ(stats.p50, 6);
    EXPECT_DOUBLE_EQ(stats.p95, 10);
    EXPECT_NEAR(stats.deviation, 2.8722813, 1e-7);
    EXPECT_DOUBLE_EQ(statsOf({}).most, 0);
}

}  // namespace
}  // namespace isthmus::cli
