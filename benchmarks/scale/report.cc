#include "benchmarks/scale/report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

namespace isthmus::scale {
namespace {

std::string sizeText(std::uint64_t bytes) {
    constexpr std::uint64_t kMega = 1 << 20;
    if (bytes >= kMega && bytes % kMega == 0) return fmt::format("{}M", bytes / kMega);
    if (bytes >= 1024 && bytes % 1024 == 0) return fmt::format("{}K", bytes / 1024);
    return fmt::format("{}", bytes);
}

std::string timeText(double seconds) {
    if (seconds >= 1) return fmt::format("{:.2f} s", seconds);
    if (seconds >= 1e-3) return fmt::format("{:.2f} ms", seconds * 1e3);
    return fmt::format("{:.1f} us", seconds * 1e6);
}

bool isMeasured(const Row& row) {
    return row.leftOut.empty() && row.seconds > 0;
}

/// One call, whatever the algorithm, apart from the number of ranks, which is the last key.
auto callOf(const Row& row) {
    return std::tie(row.ranksOfNode, row.topology, row.collective, row.bytes, row.ranks);
}

std::string lineOf(const Row& chosen, const Row* best, double before) {
    const double bound = chosen.boundSeconds;
    const double bytes =
        chosen.boundBytesPerCard > 0 ? chosen.bytesPerCard / chosen.boundBytesPerCard : 0;
    std::string line = fmt::format(
        "{:>4} {:<15} {:<14} {:>4} {:>6}  {:<22} {:>4} {:>10} {:>10} {:>9.1f}", chosen.ranksOfNode,
        chosen.topology, nameOf(chosen.collective), sizeText(chosen.bytes), chosen.ranks,
        chosen.algorithm, chosen.segments, isMeasured(chosen) ? timeText(chosen.seconds) : "-",
        timeText(bound), isMeasured(chosen) && bound > 0 ? chosen.seconds / bound : 0);
    line += fmt::format(" {:>7.3f}", bytes);
    line += before > 0 && isMeasured(chosen) ? fmt::format(" {:>6.2f}", chosen.seconds / before)
                                             : fmt::format(" {:>6}", "-");
    if (!isMeasured(chosen)) line += "  left out: " + chosen.leftOut;
    if (best != nullptr && best != &chosen) {
        line += fmt::format("  {} {}", best->algorithm, timeText(best->seconds));
    }
    return line + "\n";
}

nlohmann::json jsonOf(const Row& row) {
    nlohmann::json one = {{"topology", row.topology},
                          {"ranks_of_node", row.ranksOfNode},
                          {"ranks", row.ranks},
                          {"collective", nameOf(row.collective)},
                          {"bytes", row.bytes},
                          {"algorithm", row.algorithm},
                          {"chosen", row.isChosen},
                          {"segments", row.segments},
                          {"bound_seconds", row.boundSeconds},
                          {"bound_bytes_per_card", row.boundBytesPerCard}};
    if (row.form) one["form_seconds"] = {row.form->least, row.form->most};
    if (!row.leftOut.empty()) {
        one["left_out"] = row.leftOut;
        return one;
    }
    one["seconds"] = row.seconds;
    one["bytes_per_card"] = row.bytesPerCard;
    if (row.onePassSeconds > 0) {
        one["one_pass_seconds"] = row.onePassSeconds;
        one["inside_seconds"] = row.insideSeconds;
        one["departure"] = row.departure;
    }
    return one;
}

}  // namespace

std::string heading(const Question& question) {
    const Topology any = topologyOf("fat_tree", 64, 8, question.machines);
    const LinkModel& model = any.model;
    return fmt::format(
        "# cards of {} Gbit/s ({:.3f} GB/s of payload), {:.0f} us from node to node, {:.0f} us of "
        "a "
        "processor a message,\n# {:.0f} GB/s of memory a node; racks of {} nodes of 8 or {} of 1; "
        "narrow: links {} times as narrow as their cards together\n",
        question.machines.gigabits, model.wireBytesPerSecond / 1e9, model.wireLatencySeconds * 1e6,
        model.messageSeconds * 1e6, model.nodeBytesPerSecond / 1e9, question.machines.rackNodes,
        question.machines.rackRanks, question.machines.oversubscription);
}

void sort(std::vector<Row>& rows) {
    std::sort(rows.begin(), rows.end(), [](const Row& one, const Row& other) {
        return std::tuple_cat(callOf(one), std::tie(one.algorithm)) <
               std::tuple_cat(callOf(other), std::tie(other.algorithm));
    });
}

std::string table(const std::vector<Row>& rows) {
    std::map<decltype(callOf(rows.front())), std::vector<const Row*>> calls;
    for (const Row& row : rows) calls[callOf(row)].push_back(&row);
    std::string text = fmt::format(
        "{:>4} {:<15} {:<14} {:>4} {:>6}  {:<22} {:>4} {:>10} {:>10} {:>9} {:>7} {:>6}  quicker\n",
        "node", "topology", "collective", "size", "ranks", "chosen", "segm", "time", "bound",
        "of bound", "bytes", "growth");
    const Row* last = nullptr;
    for (const auto& [call, all] : calls) {
        const Row* chosen = nullptr;
        const Row* best = nullptr;
        for (const Row* row : all) {
            if (row->isChosen) chosen = row;
            if (isMeasured(*row) && (best == nullptr || row->seconds < best->seconds)) best = row;
        }
        if (chosen == nullptr) continue;
        if (best != nullptr && isMeasured(*chosen) && best->seconds > chosen->seconds * 0.98)
            best = chosen;
        const bool isLonger = last != nullptr && last->topology == chosen->topology &&
                              last->ranksOfNode == chosen->ranksOfNode &&
                              last->collective == chosen->collective &&
                              last->bytes == chosen->bytes;
        text += lineOf(*chosen, best, isLonger ? last->seconds : 0);
        last = chosen;
    }
    return text;
}

std::vector<Row> departures(const std::vector<Row>& rows, double tolerance) {
    std::vector<Row> found;
    for (const Row& row : rows) {
        if (std::abs(row.departure) > tolerance) found.push_back(row);
    }
    return found;
}

std::string summary(const std::vector<Row>& rows, double tolerance) {
    std::map<std::string, int> leftOut;
    int compared = 0;
    for (const Row& row : rows) {
        if (!row.leftOut.empty())
            ++leftOut[fmt::format("{} {} of {} ranks, nodes of {}: {}", nameOf(row.collective),
                                  row.algorithm, row.ranks, row.ranksOfNode, row.leftOut)];
        compared += row.onePassSeconds > 0 ? 1 : 0;
    }
    std::string text;
    for (const auto& [what, times] : leftOut)
        text += fmt::format("# left out ({} rows): {}\n", times, what);
    for (const Row& row : departures(rows, tolerance)) {
        text += fmt::format(
            "# DEPARTS by {:+.1f} %: {} {} {} of {} ranks, nodes of {}, {}: {} in one pass, form "
            "{} to "
            "{}, inside nodes {}\n",
            row.departure * 100, nameOf(row.collective), sizeText(row.bytes), row.algorithm,
            row.ranks, row.ranksOfNode, row.topology, timeText(row.onePassSeconds),
            timeText(row.form->least), timeText(row.form->most), timeText(row.insideSeconds));
    }
    return text + fmt::format(
                      "# {} calls in one pass beside their closed forms, {} depart by more "
                      "than {:.0f} %\n",
                      compared, departures(rows, tolerance).size(), tolerance * 100);
}

std::string json(const Question& question, const std::vector<Row>& rows, double tolerance) {
    nlohmann::json document = {{"gigabits", question.machines.gigabits},
                               {"oversubscription", question.machines.oversubscription},
                               {"tolerance", tolerance},
                               {"rows", nlohmann::json::array()}};
    for (const Row& row : rows) document["rows"].push_back(jsonOf(row));
    return document.dump(1) + "\n";
}

}  // namespace isthmus::scale
