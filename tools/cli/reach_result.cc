#include "tools/cli/reach_result.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

namespace isthmus::cli {
namespace {

constexpr std::size_t kMostNamed = 12;  // pairs of one kind

/// Pairs that differ in figures only.
using Kind = std::vector<const PairReach*>;

bool isAlike(const PairReach& left, const PairReach& right) {
    const auto same = [](const WayBetween& a, const WayBetween& b) {
        return std::tie(a.transport, a.isProven, a.why) == std::tie(b.transport, b.isProven, b.why);
    };
    return left.isOneNode == right.isOneNode && left.chosen == right.chosen &&
           std::equal(left.ways.begin(), left.ways.end(), right.ways.begin(), right.ways.end(),
                      same);
}

std::vector<Kind> kindsOf(const std::vector<PairReach>& pairs) {
    std::vector<Kind> kinds;
    for (const PairReach& pair : pairs) {
        const auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const Kind& each) {
            return isAlike(*each.front(), pair);
        });
        if (kind == kinds.end()) {
            kinds.push_back({&pair});
        } else {
            kind->push_back(&pair);
        }
    }
    return kinds;
}

std::string range(double least, double most) {
    const std::string from = fmt::format("{:.3g}", least);
    const std::string to = fmt::format("{:.3g}", most);
    return from == to ? from : from + " to " + to;
}

std::string figures(const Kind& kind, const std::string& transport) {
    std::vector<double> latencies;
    std::vector<double> rates;
    for (const PairReach* pair : kind) {
        const WayBetween* const way = pair->way(transport);
        if (way == nullptr || way->latencySeconds <= 0) continue;
        latencies.push_back(way->latencySeconds);
        rates.push_back(way->bytesPerSecond);
    }
    if (latencies.empty()) return "not measured";
    const auto [quick, late] = std::minmax_element(latencies.begin(), latencies.end());
    const auto [slow, fast] = std::minmax_element(rates.begin(), rates.end());
    return fmt::format("{} us, {} GB/s", range(*quick * 1e6, *late * 1e6),
                       range(*slow * 1e-9, *fast * 1e-9));
}

std::string pairNames(const Kind& kind) {
    std::string names;
    for (std::size_t at = 0; at < std::min(kind.size(), kMostNamed); ++at) {
        names += fmt::format("{}{}-{}", names.empty() ? "" : ", ", kind[at]->one, kind[at]->other);
    }
    if (kind.size() > kMostNamed) names += fmt::format(" and {} more", kind.size() - kMostNamed);
    return names;
}

std::string kindText(const Kind& kind) {
    const PairReach& first = *kind.front();
    std::string text =
        fmt::format("{} {} {}: {}\n", kind.size(), kind.size() == 1 ? "pair" : "pairs",
                    first.isOneNode ? "inside a node" : "between nodes", pairNames(kind));
    if (first.chosen.empty()) text += "  nothing leads there\n";
    for (const WayBetween& way : first.ways) {
        const bool isChosen = way.transport == first.chosen;
        std::string line = way.isProven ? figures(kind, way.transport) : "not proved";
        if (!way.why.empty()) line += (way.isProven ? "; " : ": ") + way.why;
        text += fmt::format("  {} {:<5} {}\n", isChosen ? "*" : " ", way.transport, line);
    }
    return text;
}

nlohmann::ordered_json waysAsJson(const std::vector<WayBetween>& ways) {
    auto rows = nlohmann::ordered_json::array();
    for (const WayBetween& way : ways) {
        rows.push_back({{"transport", way.transport},
                        {"proved", way.isProven},
                        {"latency_seconds", way.latencySeconds},
                        {"bytes_per_second", way.bytesPerSecond},
                        {"why", way.why}});
    }
    return rows;
}

}  // namespace

const WayBetween* PairReach::way(const std::string& transport) const {
    const auto found = std::find_if(ways.begin(), ways.end(), [&](const WayBetween& each) {
        return each.transport == transport;
    });
    return found == ways.end() ? nullptr : &*found;
}

bool PairReach::isHealthy() const {
    const WayBetween* const used = way(chosen);
    return used != nullptr && used->isProven;
}

bool ClusterReach::isHealthy() const {
    return std::all_of(pairs.begin(), pairs.end(),
                       [](const PairReach& pair) { return pair.isHealthy(); });
}

std::string reachText(const ClusterReach& reach) {
    std::string text;
    for (std::size_t rank = 0; rank < reach.ranks.size(); ++rank) {
        const RankReach& each = reach.ranks[rank];
        text += fmt::format("rank {} ({}):", rank, each.place);
        for (const std::string& transport : each.transports) text += " " + transport;
        for (const WayBetween& missing : each.missing) {
            text += fmt::format("; not {}: {}", missing.transport, missing.why);
        }
        text += "\n";
    }
    for (const Kind& kind : kindsOf(reach.pairs)) text += kindText(kind);
    if (reach.pairs.empty()) text += "one rank: there are no pairs\n";
    return text;
}

std::string reachJson(const ClusterReach& reach) {
    nlohmann::ordered_json document;
    document["ranks"] = nlohmann::ordered_json::array();
    for (const RankReach& each : reach.ranks) {
        document["ranks"].push_back({{"place", each.place},
                                     {"transports", each.transports},
                                     {"missing", waysAsJson(each.missing)}});
    }
    document["pairs"] = nlohmann::ordered_json::array();
    for (const PairReach& pair : reach.pairs) {
        document["pairs"].push_back({{"ranks", {pair.one, pair.other}},
                                     {"one_node", pair.isOneNode},
                                     {"chosen", pair.chosen},
                                     {"healthy", pair.isHealthy()},
                                     {"ways", waysAsJson(pair.ways)}});
    }
    return document.dump(2) + "\n";
}

// The circle method: one rank stands still, the others walk round it.
std::vector<std::vector<Rank>> roundsOf(int ranks) {
    const int seats = ranks + ranks % 2;
    std::vector<std::vector<Rank>> rounds;
    for (int round = 0; round + 1 < seats; ++round) {
        std::vector<Rank> partner(static_cast<std::size_t>(ranks), -1);
        const auto meet = [&](int one, int other) {
            if (one >= ranks || other >= ranks) return;
            partner[static_cast<std::size_t>(one)] = other;
            partner[static_cast<std::size_t>(other)] = one;
        };
        meet(round, seats - 1);
        for (int step = 1; step < seats / 2; ++step) {
            meet((round + step) % (seats - 1), (round + seats - 1 - step) % (seats - 1));
        }
        rounds.push_back(std::move(partner));
    }
    return rounds;
}

}  // namespace isthmus::cli
