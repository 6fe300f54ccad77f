#include "tools/cli/tune_report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "comm/algorithm/catalogue.hpp"

namespace isthmus::cli {
namespace {

// The file keeps the order of its fields.
using Json = nlohmann::ordered_json;

Json jsonOf(const AlgorithmRule& rule) {
    Json entry;
    entry["collective"] = nameOf(*rule.collective);
    entry["nodes"] = rule.nodes;
    entry["min_bytes"] = rule.leastBytes;
    if (rule.mostBytes != std::numeric_limits<std::uint64_t>::max()) {
        entry["max_bytes"] = rule.mostBytes;
    }
    entry["algorithm"] = rule.algorithm;
    return entry;
}

Json jsonOf(const TunedPoint& point) {
    Json entry;
    entry["collective"] = nameOf(point.collective);
    entry["bytes"] = point.bytes;
    entry["chosen"] = point.chosen;
    for (const auto& [name, seconds] : point.seconds) entry["microseconds"][name] = seconds * 1e6;
    return entry;
}

bool isLastOfItsCollective(const std::vector<TunedPoint>& points, std::size_t at) {
    return at + 1 == points.size() || points[at + 1].collective != points[at].collective;
}

}  // namespace

double TunedPoint::secondsOf(const std::string& algorithm) const {
    const auto found = std::find_if(seconds.begin(), seconds.end(),
                                    [&](const auto& entry) { return entry.first == algorithm; });
    return found == seconds.end() ? std::numeric_limits<double>::infinity() : found->second;
}

std::string tuneHead() {
    return fmt::format("{:<15} {:>11}  {:<22} {:>11}  {:<22} {:>11}  {:>6}\n", "collective",
                       "bytes", "chosen", "us", "best", "us", "ratio");
}

std::string tuneRow(const TunedPoint& point) {
    return fmt::format("{:<15} {:>11}  {:<22} {:>11.1f}  {:<22} {:>11.1f}  {:>6.2f}\n",
                       nameOf(point.collective), point.bytes, point.chosen,
                       point.chosenSeconds() * 1e6, point.best().first, point.best().second * 1e6,
                       point.ratio());
}

std::string tuneFoot(const std::vector<TunedPoint>& points) {
    if (points.empty()) return "";
    const auto good = std::count_if(points.begin(), points.end(), [](const TunedPoint& point) {
        return point.ratio() <= kGoodRatio;
    });
    const auto worst = std::max_element(
        points.begin(), points.end(),
        [](const TunedPoint& one, const TunedPoint& other) { return one.ratio() < other.ratio(); });
    return fmt::format(
        "{} of {} choices are within {:.0f} % of the best; worst: {} of {} bytes, {:.2f}\n", good,
        points.size(), (kGoodRatio - 1) * 100, nameOf(worst->collective), worst->bytes,
        worst->ratio());
}

AlgorithmRules rulesFrom(const std::vector<TunedPoint>& points, const std::vector<int>& nodes) {
    AlgorithmRules rules;
    std::uint64_t least = 0;
    bool isRun = false;  // the last rule ends just below `least`
    for (std::size_t at = 0; at < points.size(); ++at) {
        const TunedPoint& point = points[at];
        const bool isLast = isLastOfItsCollective(points, at);
        const std::uint64_t most = isLast ? std::numeric_limits<std::uint64_t>::max() : point.bytes;
        const bool isBetter = point.secondsOf(point.alone) > kGoodRatio * point.best().second;
        if (isBetter && isRun && rules.back().algorithm == point.best().first) {
            rules.back().mostBytes = most;
        } else if (isBetter) {
            rules.push_back({point.collective, nodes, least, most, point.best().first});
        }
        isRun = isBetter && !isLast;
        least = isLast ? 0 : point.bytes + 1;
    }
    return rules;
}

std::string tuneDocument(const std::vector<TunedPoint>& points, const std::vector<int>& nodes,
                         const std::string& command) {
    Json document;
    document["isthmus_algorithms"] = 1;
    document["made_by"] = command;
    document["rules"] = Json::array();
    for (const AlgorithmRule& rule : rulesFrom(points, nodes)) {
        document["rules"].push_back(jsonOf(rule));
    }
    document["measured"] = Json::array();
    for (const TunedPoint& point : points) document["measured"].push_back(jsonOf(point));
    return document.dump(2) + "\n";
}

}  // namespace isthmus::cli
