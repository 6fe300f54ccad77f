#include "tools/cli/bench_json.hpp"

#include <cstdio>

#include <fmt/core.h>
#include <isthmus/isthmus.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

namespace isthmus::cli {
namespace {

using Json = nlohmann::ordered_json;

// Of nccl-tests 2.19.6.
constexpr int kFileVersion = 2;

const char* truth(bool value) {
    return value ? "true" : "false";
}

// The percentile's place among sorted times: ceil(n * percent / 100) - 1.
double percentile(const std::vector<double>& sorted, std::size_t percent) {
    const std::size_t place = (sorted.size() * percent + 99) / 100;
    return sorted[std::min(sorted.size() - 1, place - 1)];
}

template <typename Value>
Json orNull(const std::optional<Value>& value) {
    return value ? Json(*value) : Json();
}

Json halfJson(const HalfResult& half) {
    Json json = {{"time", half.seconds * 1e6},
                 {"alg_bw", half.algorithmBytesPerSecond / 1e9},
                 {"bus_bw", half.busBytesPerSecond / 1e9},
                 {"nwrong", orNull(half.wrong)}};
    if (half.wire) {
        json["wire_bytes"] = half.wire->bytes;
        json["wire_bound_bytes"] = half.wire->boundBytes;
        json["bound_time"] =
            half.wire->boundSeconds ? Json(*half.wire->boundSeconds * 1e6) : Json();
        json["of_bound"] = orNull(half.wire->share);
    }
    return json;
}

Json iterationsJson(const HalfResult& half) {
    const IterationStats stats = statsOf(half.iterationSeconds);
    Json times = Json::array();
    for (const double seconds : half.iterationSeconds) times.push_back(seconds * 1e6);
    return {{"min_us", stats.least * 1e6},
            {"max_us", stats.most * 1e6},
            {"avg_us", stats.mean * 1e6},
            {"p50_us", stats.p50 * 1e6},
            {"p95_us", stats.p95 * 1e6},
            {"p99_us", stats.p99 * 1e6},
            {"stdev_us", stats.deviation * 1e6},
            {"cv_pct", stats.variationPercent},
            {"times_us", times}};
}

Json configJson(const BenchHead& head) {
    Json json = {{"nthreads", 1},
                 {"ngpus", 1},
                 {"minimum_bytes", head.minBytes},
                 {"maximum_bytes", head.maxBytes}};
    const bool hasFactor = head.stepFactor > 1;
    json[hasFactor ? "step_factor" : "step_bytes"] = hasFactor ? head.stepFactor : head.stepBytes;
    json["warmup_iters"] = head.warmups;
    json["iterations"] = head.iterations;
    json["aggregated_iterations"] = head.aggregated;
    json["validation"] = head.checks;
    json["graph"] = 0;
    json["blocking_collectives"] = truth(true);
    json["per_iter_timing"] = truth(head.hasIterations);
    json["parallel_init"] = truth(false);
    Json devices = Json::array();
    for (const BenchRankInfo& rank : head.ranks) {
        devices.push_back({{"rank", rank.rank},
                           {"group", 0},
                           {"pid", rank.pid},
                           {"hostname", rank.host},
                           {"device", rank.localRank},
                           {"device_hex", "0000:00:00"},
                           {"device_info", fmt::format("node {}", rank.node)}});
    }
    json["devices"] = devices;
    return json;
}

Json rowJson(const BenchHead& head, const BenchRow& row) {
    Json json = {{"size", row.sizeBytes},
                 {"count", row.elements},
                 {"type", row.type},
                 {"redop", row.op},
                 {"root", fmt::format("{:6}", row.root)}};
    json["out_of_place"] = halfJson(row.outOfPlace);
    if (head.hasIterations) json["out_of_place_per_iter"] = iterationsJson(row.outOfPlace);
    json["in_place"] = halfJson(row.inPlace);
    if (head.hasIterations) json["in_place_per_iter"] = iterationsJson(row.inPlace);
    json["actual_iterations"] = row.iterations;
    json["experiment_name"] = head.collective;
    return json;
}

}  // namespace

IterationStats statsOf(std::vector<double> seconds) {
    IterationStats stats;
    if (seconds.empty()) return stats;
    std::sort(seconds.begin(), seconds.end());
    const double all = static_cast<double>(seconds.size());
    stats.least = seconds.front();
    stats.most = seconds.back();
    stats.mean = std::accumulate(seconds.begin(), seconds.end(), 0.0) / all;
    stats.p50 = seconds[seconds.size() / 2];
    stats.p95 = percentile(seconds, 95);
    stats.p99 = percentile(seconds, 99);
    double squares = 0;
    for (const double value : seconds) squares += (value - stats.mean) * (value - stats.mean);
    stats.deviation = std::sqrt(squares / all);
    stats.variationPercent = stats.mean > 0 ? 100 * stats.deviation / stats.mean : 0;
    return stats;
}

double averageBus(const std::vector<BenchRow>& rows) {
    double total = 0;
    for (const BenchRow& row : rows) {
        total += row.outOfPlace.busBytesPerSecond + row.inPlace.busBytesPerSecond;
    }
    return rows.empty() ? 0 : total / (2.0 * static_cast<double>(rows.size()));
}

std::string jsonText(const BenchHead& head, const std::vector<BenchRow>& rows,
                     const std::string& endTime) {
    Json document = {{"version", kFileVersion},
                     {"start_time", head.startTime},
                     {"args", head.arguments},
                     {"env", Json::array()},  // it may hold secrets: not printed
                     {"nccl_version", ISTHMUS_VERSION_CODE},
                     {"isthmus_version", head.version},
                     {"config", configJson(head)},
                     {"results", Json::array()}};
    for (const BenchRow& row : rows) document["results"].push_back(rowJson(head, row));
    const std::uint64_t wrong = wrongOf(rows);
    document["out_of_bounds"] = {{"count", wrong}, {"okay", truth(wrong == 0)}};
    document["average_bus_bandwidth"] = {{"bandwidth", averageBus(rows) / 1e9},
                                         {"okay", "unchecked"}};
    document["errors"] = Json::array();
    document["end_time"] = endTime;
    return document.dump(2) + "\n";
}

Status writeFile(const std::string& path, const std::string& text) {
    std::FILE* const file = std::fopen(path.c_str(), "w");
    if (file == nullptr) return Status::invalidArgument("cannot write " + path);
    const bool isWhole = std::fwrite(text.data(), 1, text.size(), file) == text.size();
    if (std::fclose(file) != 0 || !isWhole) return Status::resource("cannot write " + path);
    return {};
}

}  // namespace isthmus::cli
