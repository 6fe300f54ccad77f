#include "comm/selector/rules_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "comm/selector/select.hpp"

namespace isthmus {
namespace {

using Json = nlohmann::json;

// The one format that there is; a later one gets another number.
constexpr int kFormat = 1;

Status readBytes(const Json& rule, const char* name, std::uint64_t& bytes) {
    if (!rule.contains(name)) return {};
    if (!rule.at(name).is_number_unsigned()) {
        return Status::configuration(std::string(name) + " is no count of bytes");
    }
    bytes = rule.at(name).get<std::uint64_t>();
    return {};
}

Status readNodes(const Json& rule, std::vector<int>& nodes) {
    if (!rule.contains("nodes")) return {};
    const auto isCount = [](const Json& ranks) {
        return ranks.is_number_unsigned() && ranks > 0 && ranks <= std::numeric_limits<int>::max();
    };
    const Json& counts = rule.at("nodes");
    if (!counts.is_array() || !std::all_of(counts.begin(), counts.end(), isCount)) {
        return Status::configuration("nodes are counts of ranks, at least 1 each");
    }
    nodes = counts.get<std::vector<int>>();
    return {};
}

Result<AlgorithmRule> ruleOf(const Json& entry) {
    AlgorithmRule rule;
    for (const auto& [name, value] : entry.items()) {
        const auto known = {"collective", "nodes", "min_bytes", "max_bytes", "algorithm"};
        if (std::find(known.begin(), known.end(), name) == known.end()) {
            return Status::configuration("unknown field \"" + name + "\"");
        }
    }
    const Result<Collective> collective =
        collectiveNamed(entry.at("collective").get<std::string>());
    if (!collective.ok()) return collective.status();
    rule.collective = *collective;
    rule.algorithm = entry.at("algorithm").get<std::string>();
    ISTHMUS_TRY(readNodes(entry, rule.nodes));
    ISTHMUS_TRY(readBytes(entry, "min_bytes", rule.leastBytes));
    ISTHMUS_TRY(readBytes(entry, "max_bytes", rule.mostBytes));
    if (rule.leastBytes > rule.mostBytes) {
        return Status::configuration("min_bytes is above max_bytes");
    }
    return rule;
}

Result<AlgorithmRules> rulesOf(const Json& document) {
    if (!document.is_object() || !document.contains("isthmus_algorithms")) {
        return Status::configuration("has no \"isthmus_algorithms\": no file of `isthmus tune`");
    }
    if (document.at("isthmus_algorithms") != kFormat) {
        return Status::configuration("has format " + document.at("isthmus_algorithms").dump() +
                                     ", this version reads " + std::to_string(kFormat));
    }
    AlgorithmRules rules;
    for (const Json& entry : document.at("rules")) {
        Result<AlgorithmRule> rule = ruleOf(entry);
        if (!rule.ok()) {
            return Status::configuration("rule " + std::to_string(rules.size() + 1) + ": " +
                                         rule.status().what());
        }
        rules.push_back(std::move(*rule));
    }
    return rules;
}

}  // namespace

Result<AlgorithmRules> readRulesFile(const std::string& path) {
    const auto failed = [&](const std::string& why) {
        return Status::configuration("ISTHMUS_ALGORITHM: " + path + ": " + why);
    };
    // A pipe would wait for a writer, and give its bytes to one of the ranks only.
    std::error_code error;
    if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error)) {
        return failed("is not a plain file");
    }
    std::ifstream file(path);
    if (!file) return failed(std::strerror(errno));
    try {  // the parser and the stream report by exceptions; they end here
        Result<AlgorithmRules> rules = rulesOf(Json::parse(file));
        if (!rules.ok()) return failed(rules.status().what());
        return rules;
    } catch (const std::exception& cause) {
        return failed(cause.what());
    }
}

}  // namespace isthmus
