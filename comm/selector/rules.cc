#include "comm/selector/rules.hpp"

#include <algorithm>
#include <charconv>

#include "comm/base/knobs.hpp"
#include "comm/selector/rules_file.hpp"
#include "comm/selector/select.hpp"

namespace isthmus {
namespace {

Status wrong(std::string_view rule, const std::string& why) {
    return Status::configuration("ISTHMUS_ALGORITHM: \"" + std::string(rule) + "\": " + why);
}

std::string allAlgorithms() {
    std::vector<std::string_view> names;
    for (const Algorithm& entry : catalogue()) {
        if (std::find(names.begin(), names.end(), entry.name) == names.end()) {
            names.push_back(entry.name);
        }
    }
    std::string list;
    for (const std::string_view name : names) {
        list += (list.empty() ? "" : ", ") + std::string(name);
    }
    return list;
}

Result<std::vector<int>> parseNodes(std::string_view text) {
    std::vector<int> nodes;
    while (!text.empty()) {
        const std::size_t plus = std::min(text.find('+'), text.size());
        int ranks = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + plus, ranks);
        if (error != std::errc() || end != text.data() + plus || ranks < 1) {
            return Status::invalidArgument("nodes are counts of ranks, such as @2+2 or @3+2+1");
        }
        nodes.push_back(ranks);
        text.remove_prefix(std::min(plus + 1, text.size()));
    }
    return nodes;
}

Status parseSizes(std::string_view text, AlgorithmRule& rule) {
    const std::size_t dash = text.find('-');
    if (dash == std::string_view::npos) {
        return Status::invalidArgument("sizes are a range, such as :64K-1M, :0-4K or :1M-");
    }
    const auto read = [](std::string_view end, std::uint64_t& bytes) -> Status {
        if (end.empty()) return {};
        const Result<std::int64_t> parsed = parseBytes(std::string(end));
        if (!parsed.ok()) return parsed.status();
        bytes = static_cast<std::uint64_t>(*parsed);
        return {};
    };
    ISTHMUS_TRY(read(text.substr(0, dash), rule.leastBytes));
    ISTHMUS_TRY(read(text.substr(dash + 1), rule.mostBytes));
    if (rule.leastBytes <= rule.mostBytes) return {};
    return Status::invalidArgument("the range of sizes ends before it begins");
}

Result<AlgorithmRule> parseRule(std::string_view text) {
    AlgorithmRule rule;
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) {
        rule.algorithm = text;
        return rule;
    }
    rule.algorithm = text.substr(equals + 1);
    std::string_view calls = text.substr(0, equals);
    if (const std::size_t colon = calls.find(':'); colon != std::string_view::npos) {
        ISTHMUS_TRY(parseSizes(calls.substr(colon + 1), rule));
        calls = calls.substr(0, colon);
    }
    if (const std::size_t at = calls.find('@'); at != std::string_view::npos) {
        auto nodes = parseNodes(calls.substr(at + 1));
        if (!nodes.ok()) return nodes.status();
        rule.nodes = std::move(*nodes);
        calls = calls.substr(0, at);
    }
    const Result<Collective> collective = collectiveNamed(calls);
    if (!collective.ok()) return collective.status();
    rule.collective = *collective;
    return rule;
}

Result<AlgorithmRules> parseLine(std::string_view text) {
    AlgorithmRules rules;
    while (!text.empty()) {
        const std::size_t comma = std::min(text.find(','), text.size());
        const std::string_view part = text.substr(0, comma);
        if (!part.empty()) {
            Result<AlgorithmRule> rule = parseRule(part);
            if (!rule.ok()) return wrong(part, rule.status().what());
            rules.push_back(std::move(*rule));
        }
        text.remove_prefix(std::min(comma + 1, text.size()));
    }
    return rules;
}

// A misspelt name would otherwise never fit, and nobody would notice.
Status checkNames(const AlgorithmRules& rules) {
    for (const AlgorithmRule& rule : rules) {
        const bool isKnown =
            rule.collective
                ? findAlgorithm(*rule.collective, rule.algorithm) != nullptr
                : std::any_of(catalogue().begin(), catalogue().end(),
                              [&](const Algorithm& entry) { return entry.name == rule.algorithm; });
        if (isKnown) continue;
        return wrong(rule.text(),
                     "unknown algorithm \"" + rule.algorithm + "\": known are " +
                         (rule.collective ? knownAlgorithms(*rule.collective) : allAlgorithms()));
    }
    return {};
}

}  // namespace

bool AlgorithmRule::isFor(Collective called, std::uint64_t bytes, const Layout& layout) const {
    return (!collective || *collective == called) && leastBytes <= bytes && bytes <= mostBytes &&
           (nodes.empty() || nodes == ranksOfNodes(layout));
}

std::string AlgorithmRule::text() const {
    if (!collective) return algorithm;
    std::string text(nameOf(*collective));
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        text += (i == 0 ? "@" : "+") + std::to_string(nodes[i]);
    }
    const bool hasEnd = mostBytes != std::numeric_limits<std::uint64_t>::max();
    if (leastBytes != 0 || hasEnd) {
        text += ":" + std::to_string(leastBytes) + "-" + (hasEnd ? std::to_string(mostBytes) : "");
    }
    return text + "=" + algorithm;
}

Result<AlgorithmRules> readAlgorithmRules(std::string_view value) {
    const bool isFile = value.find('/') != std::string_view::npos || value.ends_with(".json");
    Result<AlgorithmRules> rules = isFile ? readRulesFile(std::string(value)) : parseLine(value);
    if (rules.ok()) ISTHMUS_TRY(checkNames(*rules));
    return rules;
}

std::string textOf(const AlgorithmRules& rules) {
    std::string line;
    for (const AlgorithmRule& rule : rules) line += (line.empty() ? "" : ",") + rule.text();
    return line;
}

std::vector<int> ranksOfNodes(const Layout& layout) {
    std::vector<int> ranks;
    for (const auto& node : layout.nodes) ranks.push_back(static_cast<int>(node.size()));
    return ranks;
}

}  // namespace isthmus
