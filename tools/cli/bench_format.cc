#include "tools/cli/bench_format.hpp"

#include <fmt/core.h>

#include <string_view>

#include "tools/cli/bench_json.hpp"

namespace isthmus::cli {
namespace {

constexpr std::string_view kNames[] = {"nccl", "osu", "json", "csv"};

// Bytes per second to the GB/s of the columns.
double giga(double bytesPerSecond) {
    return bytesPerSecond / 1e9;
}

std::string wireColumns(const HalfResult& half) {
    if (!half.wire) return "";
    const WireResult& wire = *half.wire;
    return fmt::format("  {:>12}  {:>12}  {:>9}  {:>6}", wire.bytes, wire.boundBytes,
                       wire.boundSeconds ? fitted(*wire.boundSeconds * 1e6, 9) : "N/A",
                       wire.share ? fmt::format("{:.1f}", *wire.share * 100) : "N/A");
}

std::string iterationColumns(const HalfResult& half) {
    if (half.iterationSeconds.empty()) return "";
    const IterationStats stats = statsOf(half.iterationSeconds);
    return "  " + fitted(stats.least * 1e6, 7) + "  " + fitted(stats.most * 1e6, 7) + "  " +
           fitted(stats.p99 * 1e6, 7) + "  " + fitted(stats.variationPercent, 7);
}

std::string halfColumns(const HalfResult& half) {
    std::string line = "  " + fitted(half.seconds * 1e6, 7);
    line += "  " + fitted(giga(half.algorithmBytesPerSecond), 6);
    line += "  " + fitted(giga(half.busBytesPerSecond), 6);
    line += half.wrong ? fmt::format("  {:6g}", static_cast<double>(*half.wrong)) : "    N/A";
    return line + iterationColumns(half);
}

// The four words over one half, and those of --wire.
std::string halfWords(bool isUnits, bool hasIterations) {
    std::string words =
        isUnits ? fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}", "(us)", "(GB/s)", "(GB/s)", "")
                : fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}", "time", "algbw", "busbw", "#wrong");
    if (!hasIterations) return words;
    return words +
           (isUnits
                ? fmt::format("  {:>7}  {:>7}  {:>7}  {:>7}", "(us)", "(us)", "(us)", "(%)")
                : fmt::format("  {:>7}  {:>7}  {:>7}  {:>7}", "i_min", "i_max", "i_p99", "i_cv%"));
}

std::string wireWords(bool isUnits) {
    const std::string half =
        isUnits
            ? fmt::format("  {:>12}  {:>12}  {:>9}  {:>6}", "(B/card)", "(B/card)", "(us)", "(%)")
            : fmt::format("  {:>12}  {:>12}  {:>9}  {:>6}", "wire", "bound", "boundtime", "share");
    return half + half;
}

std::string wordLine(const BenchHead& head, bool isUnits) {
    const auto words = [&](const char* one, const char* two, const char* three, const char* four,
                           const char* five) {
        return fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}", one, two, three, four, five);
    };
    std::string line = isUnits ? words("(B)", "(elements)", "", "", "")
                               : words("size", "count", "type", "redop", "root");
    line += halfWords(isUnits, head.hasIterations) + halfWords(isUnits, head.hasIterations) + " ";
    return line + (head.hasWire ? wireWords(isUnits) : "") + "\n";
}

std::string titleLine(const BenchHead& head) {
    const std::string left =
        fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}", "", "", "", "", "");
    if (head.hasIterations) {
        return left + fmt::format(
                          "{:14}out-of-place (+ per-iteration){:32}"
                          "in-place (+ per-iteration)\n",
                          "", "");
    }
    return left + fmt::format("{:11}out-of-place{:23}in-place{:10}\n", "", "", "");
}

std::string ncclHead(const BenchHead& head) {
    const bool hasFactor = head.stepFactor > 1;
    std::string text =
        fmt::format("# isthmus version {}, columns of nccl-tests 2.19.6\n", head.version);
    text += fmt::format("# Collective test starting: {}\n", head.collective);
    text += fmt::format(
        "# nThread 1 nGpus 1 minBytes {} maxBytes {} step: {}({}) warmup iters: {} iters: {} agg "
        "iters: {} validation: {} graph: 0 unalign: 0\n#\n# Using devices\n",
        head.minBytes, head.maxBytes, hasFactor ? head.stepFactor : head.stepBytes,
        hasFactor ? "factor" : "bytes", head.warmups, head.iterations, head.aggregated,
        head.checks);
    for (const BenchRankInfo& rank : head.ranks) {
        text += fmt::format(
            "#  Rank {:2} Group  0 Pid {:6} on {:>10} device {:2} [0000:00:00] node {}\n",
            rank.rank, rank.pid, rank.host, rank.localRank, rank.node);
    }
    text += "#\n" + titleLine(head);
    return text + wordLine(head, false) + wordLine(head, true);
}

std::string ncclRow(const BenchRow& row) {
    return fmt::format("{:12}  {:12}  {:>8}  {:>6}  {:6}", row.sizeBytes, row.elements, row.type,
                       row.op, row.root) +
           halfColumns(row.outOfPlace) + halfColumns(row.inPlace) + wireColumns(row.outOfPlace) +
           wireColumns(row.inPlace) + "\n";
}

std::string ncclFoot(const BenchHead& head, const std::vector<BenchRow>& rows) {
    const std::uint64_t wrong = wrongOf(rows);
    return fmt::format("# {:<20} : {} {}\n# {:<20} : {:g} \n#\n# Collective test concluded: {}\n",
                       "Out of bounds values", wrong, wrong == 0 ? "OK" : "FAILED",
                       "Avg bus bandwidth", giga(averageBus(rows)), head.collective);
}

// OMB says "Allreduce", "Reduce_scatter", "Alltoall".
std::string osuNameOf(const std::string& collective) {
    std::string name;
    for (const char letter : collective) {
        if (letter != '_' || collective == "reduce_scatter") name += letter;
    }
    name[0] = static_cast<char>(name[0] - 'a' + 'A');
    return name;
}

std::string osuHead(const BenchHead& head) {
    const std::string name = osuNameOf(head.collective);
    std::string text = fmt::format("# isthmus {} Latency Test, columns of OSU v7.4\n", name);
    text += fmt::format("{:<10}{:>20}", "# Size", "Avg Latency(us)");
    if (!head.hasIterations) return text + "\n";
    return text +
           fmt::format("{:>20}{:>20}{:>12}\n", "Min Latency(us)", "Max Latency(us)", "Iterations");
}

std::string osuRow(const BenchHead& head, const BenchRow& row) {
    const HalfResult& half = row.outOfPlace;
    const std::string text = fmt::format("{:<10}{:>20.2f}", row.blockBytes, half.seconds * 1e6);
    if (!head.hasIterations) return text + "\n";
    return text + fmt::format("{:>20.2f}{:>20.2f}{:>12}\n", half.leastSeconds * 1e6,
                              half.mostSeconds * 1e6, row.iterations);
}

std::string csvHead(const BenchHead& head) {
    return std::string("size,count,type,redop,root,place,time_us,algbw,busbw,wrong") +
           (head.hasWire ? ",wire_bytes,wire_bound_bytes,bound_time_us,of_bound" : "") + "\n";
}

std::string csvHalf(const BenchRow& row, const HalfResult& half, const char* place) {
    std::string line = fmt::format(
        "{},{},{},{},{},{},{:.3f},{:.6f},{:.6f},{}", row.sizeBytes, row.elements, row.type, row.op,
        row.root, place, half.seconds * 1e6, giga(half.algorithmBytesPerSecond),
        giga(half.busBytesPerSecond), half.wrong ? std::to_string(*half.wrong) : "");
    if (half.wire) {
        const WireResult& wire = *half.wire;
        line +=
            fmt::format(",{},{},{},{}", wire.bytes, wire.boundBytes,
                        wire.boundSeconds ? fmt::format("{:.3f}", *wire.boundSeconds * 1e6) : "",
                        wire.share ? fmt::format("{:.4f}", *wire.share) : "");
    }
    return line + "\n";
}

}  // namespace

Result<BenchFormat> benchFormatNamed(std::string_view name) {
    for (std::size_t index = 0; index < std::size(kNames); ++index) {
        if (name == kNames[index]) return static_cast<BenchFormat>(index);
    }
    return Status::invalidArgument("unknown format \"" + std::string(name) +
                                   "\": known are nccl, osu, json, csv");
}

std::string headText(BenchFormat format, const BenchHead& head) {
    switch (format) {
    case BenchFormat::kNccl:
        return ncclHead(head);
    case BenchFormat::kOsu:
        return osuHead(head);
    case BenchFormat::kCsv:
        return csvHead(head);
    case BenchFormat::kJson:
        break;
    }
    return "";
}

std::string rowText(BenchFormat format, const BenchHead& head, const BenchRow& row) {
    switch (format) {
    case BenchFormat::kNccl:
        return ncclRow(row);
    case BenchFormat::kOsu:
        return osuRow(head, row);
    case BenchFormat::kCsv:
        return csvHalf(row, row.outOfPlace, "out_of_place") + csvHalf(row, row.inPlace, "in_place");
    case BenchFormat::kJson:
        break;
    }
    return "";
}

std::string footText(BenchFormat format, const BenchHead& head, const std::vector<BenchRow>& rows,
                     const std::string& endTime) {
    if (format == BenchFormat::kNccl) return ncclFoot(head, rows);
    if (format == BenchFormat::kJson) return jsonText(head, rows, endTime);
    return "";
}

std::uint64_t wrongOf(const std::vector<BenchRow>& rows) {
    std::uint64_t wrong = 0;
    for (const BenchRow& row : rows) {
        wrong += row.outOfPlace.wrong.value_or(0) + row.inPlace.wrong.value_or(0);
    }
    return wrong;
}

std::string fitted(double value, int width) {
    int digits = 0;  // before the point; 0 for values below 1
    for (double limit = 1; value >= limit && digits < 20; limit *= 10) ++digits;
    if (digits < width - 2) return fmt::format("{:{}.2f}", value, width);
    if (digits < width - 1) return fmt::format("{:{}.1f}", value, width);
    if (digits < width + 1) return fmt::format("{:{}.0f}", value, width);
    return fmt::format("{:{}.{}e}", value, width, width >= 7 ? 1 : 0);
}

}  // namespace isthmus::cli
