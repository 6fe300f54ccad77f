#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "tools/cli/explain_report.hpp"

namespace isthmus::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string sizeText(std::uint64_t bytes) {
    const double value = static_cast<double>(bytes);
    if (bytes >= std::uint64_t{1} << 30) return fmt::format("{:.4g} GiB", value / 0x1p30);
    if (bytes >= std::uint64_t{1} << 20) return fmt::format("{:.4g} MiB", value / 0x1p20);
    if (bytes >= std::uint64_t{1} << 10) return fmt::format("{:.4g} KiB", value / 0x1p10);
    return fmt::format("{} B", bytes);
}

std::string timeText(double seconds) {
    if (seconds >= 1) return fmt::format("{:.3f} s", seconds);
    if (seconds >= 1e-3) return fmt::format("{:.3f} ms", seconds * 1e3);
    return fmt::format("{:.1f} us", seconds * 1e6);
}

const ExplainCandidate* chosenOf(const ExplainAnswer& answer) {
    for (const ExplainCandidate& candidate : answer.candidates) {
        if (candidate.algorithm.name == answer.chosen) return &candidate;
    }
    return nullptr;
}

bool hasRacks(const ExplainQuestion& question) {
    return !question.layout.racks.empty();
}

std::string headText(const ExplainQuestion& question, const ExplainAnswer& answer) {
    const std::size_t nodes = question.layout.nodes.size();
    std::string text = fmt::format("{} of {} ({} bytes, {}) over {}: {} node{}, {} ranks\n",
                                   nameOf(question.collective), sizeText(answer.operandBytes),
                                   answer.operandBytes, nameOf(question.type), question.layoutText,
                                   nodes, nodes == 1 ? "" : "s", question.layout.ranks());
    if (nodes < 2) return text + "nothing crosses between nodes\n";
    std::string rates = fmt::format("{:.4g}", answer.model.wireBytesPerSecond / 1e6);
    if (!answer.model.cardBytesPerSecond.empty()) {
        rates.clear();
        for (const double rate : answer.model.cardBytesPerSecond)
            rates += fmt::format("{}{:.4g}", rates.empty() ? "" : ", ", rate / 1e6);
    }
    const char* const given = "95.65 % of the line given";
    text += fmt::format("goodput of a card: {} MB/s ({})\n", rates,
                        question.lineBitsPerSecond.empty() ? "assumed: 10 Gbit/s" : given);
    std::string ofRacks;
    if (hasRacks(question)) {
        text += fmt::format("goodput of a rack's link: {:.4g} MB/s ({})\n",
                            answer.model.rackBytesPerSecond / 1e6,
                            question.rackBitsPerSecond > 0 ? given : "assumed: that of a card");
        ofRacks = fmt::format(", {} per rack", answer.rackBound.busiest);
    }
    return text + fmt::format("lower bound: {} bytes per card{}, {}\n", answer.bound.busiest,
                              ofRacks, timeText(answer.boundSeconds));
}

/// A column for racks where there are any.
std::string rackColumn(const ExplainQuestion& question, const std::string& text) {
    return hasRacks(question) ? fmt::format(" {:>14}", text) : "";
}

std::string candidateLine(const ExplainQuestion& question, const ExplainAnswer& answer,
                          const ExplainCandidate& candidate) {
    const bool isChosen = candidate.algorithm.name == answer.chosen;
    const double bound = static_cast<double>(answer.bound.busiest);
    const std::string ratio =
        bound > 0 ? fmt::format("{:.3f}", static_cast<double>(candidate.busiest) / bound) : "-";
    const std::string share =
        bound > 0 ? fmt::format("{:.1f} %", 100 * answer.boundSeconds / candidate.seconds) : "-";
    return fmt::format("{} {:<28} {:>12} {:>9} {:>14} {:>7}{} {:>8} {:>6}  {}\n",
                       isChosen ? "*" : " ", candidate.algorithm.name, timeText(candidate.seconds),
                       share, candidate.busiest, ratio,
                       rackColumn(question, std::to_string(candidate.busiestRack)),
                       candidate.selection.segments, candidate.steps, candidate.algorithm.meaning);
}

Json nodesJson(const std::vector<WireBytes>& nodes) {
    Json list = Json::array();
    for (const WireBytes& node : nodes) {
        list.push_back({{"egress", node.egress}, {"ingress", node.ingress}});
    }
    return list;
}

Json candidateJson(const ExplainAnswer& answer, const ExplainCandidate& candidate) {
    const double bound = static_cast<double>(answer.bound.busiest);
    Json json = {{"algorithm", candidate.algorithm.name},
                 {"meaning", candidate.algorithm.meaning},
                 {"source", candidate.algorithm.source},
                 {"predicted_us", candidate.seconds * 1e6},
                 {"wire_bytes", candidate.busiest},
                 {"nodes", nodesJson(candidate.wireBytes)},
                 {"segments", candidate.selection.segments},
                 {"window", candidate.selection.window},
                 {"steps", candidate.steps}};
    if (candidate.busiestRack > 0) json["rack_bytes"] = candidate.busiestRack;
    json["of_bound"] =
        bound > 0 && candidate.seconds > 0 ? Json(answer.boundSeconds / candidate.seconds) : Json();
    json["bytes_over_bound"] =
        bound > 0 ? Json(static_cast<double>(candidate.busiest) / bound) : Json();
    return json;
}

}  // namespace

std::string answerText(const ExplainQuestion& question, const ExplainAnswer& answer) {
    std::string text = headText(question, answer);
    text += fmt::format("\n  {:<28} {:>12} {:>9} {:>14} {:>7}{} {:>8} {:>6}\n", "algorithm",
                        "predicted", "of bound", "bytes/card", "x bound",
                        rackColumn(question, "bytes/rack"), "segments", "steps");
    for (const ExplainCandidate& candidate : answer.candidates) {
        text += candidateLine(question, answer, candidate);
    }
    text += fmt::format("\nchosen: {}: {}\n", answer.chosen, answer.why);
    const ExplainCandidate* chosen = chosenOf(answer);
    if (chosen == nullptr || question.layout.nodes.size() < 2) return text;
    text += fmt::format("{:<6}{:>14}{:>14}{:>14}{:>14}\n", "node", "egress", "least", "ingress",
                        "least");
    for (std::size_t node = 0; node < chosen->wireBytes.size(); ++node) {
        const WireBytes& bytes = chosen->wireBytes[node];
        const WireBytes& least = answer.bound.nodes[node];
        text += fmt::format("{:<6}{:>14}{:>14}{:>14}{:>14}\n", node, bytes.egress, least.egress,
                            bytes.ingress, least.ingress);
    }
    return text;
}

std::string answerJson(const ExplainQuestion& question, const ExplainAnswer& answer) {
    Json json = {{"collective", nameOf(question.collective)},
                 {"bytes", answer.operandBytes},
                 {"type", nameOf(question.type)},
                 {"root", question.root},
                 {"nodes", question.layout.nodes},
                 {"mapped", question.isMapped},
                 {"goodput_bytes_per_second", answer.model.wireBytesPerSecond},
                 {"bound",
                  {{"wire_bytes", answer.bound.busiest},
                   {"time_us", answer.boundSeconds * 1e6},
                   {"nodes", nodesJson(answer.bound.nodes)}}},
                 {"candidates", Json::array()},
                 {"choice", answer.chosen},
                 {"why", answer.why}};
    if (!answer.model.cardBytesPerSecond.empty())
        json["goodput_by_node"] = answer.model.cardBytesPerSecond;
    if (hasRacks(question)) {
        json["racks"] = question.layout.racks.back();
        json["goodput_bytes_per_second_of_racks"] = answer.model.rackBytesPerSecond;
        json["bound"]["rack_bytes"] = answer.rackBound.busiest;
    }
    for (const ExplainCandidate& candidate : answer.candidates) {
        json["candidates"].push_back(candidateJson(answer, candidate));
    }
    return json.dump(2) + "\n";
}

}  // namespace isthmus::cli
