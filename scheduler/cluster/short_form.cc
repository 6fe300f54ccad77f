#include <charconv>
#include <optional>
#include <utility>

#include "scheduler/cluster/cluster.hpp"

namespace isthmus::scheduler {
namespace {

/// "8x16x128" as numbers; nothing when a part is no number of 1 to kMostRanks.
std::optional<std::vector<int>> factorsOf(std::string_view term) {
    std::vector<int> factors;
    for (;;) {
        const std::size_t times = term.find('x');
        const std::string_view digits = term.substr(0, times);
        int value = 0;
        const auto [end, error] =
            std::from_chars(digits.data(), digits.data() + digits.size(), value);
        if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
        if (value < 1 || value > kMostRanks) return std::nullopt;
        factors.push_back(value);
        if (times == term.npos) return factors;
        term.remove_prefix(times + 1);
    }
}

Status malformed(std::string_view text) {
    return Status::invalidArgument("nodes \"" + std::string(text) +
                                   "\" is none of MxR (M nodes of R ranks), R+R+... (one number a "
                                   "node) and AxBxR (A racks of B "
                                   "nodes of R ranks), with 1 to " +
                                   std::to_string(kMostRanks) + " ranks");
}

/// The names of the levels above nodes of a tree with `depth` of them, outermost first.
std::string levelName(std::size_t depth, std::size_t level) {
    constexpr std::string_view kNames[] = {"rack", "pod", "hall"};  // innermost first
    const std::size_t above = depth - 1 - level;
    return above < std::size(kNames) ? std::string(kNames[above]) : "level" + std::to_string(above);
}

/// Whether one more node of `ranks` has room.
bool addNode(Cluster& cluster, int ranks, double bitsPerSecond, std::vector<std::string> at,
             std::int64_t& total) {
    total += ranks;
    if (total > kMostRanks) return false;
    Node node;
    node.name = "node" + std::to_string(cluster.nodes.size());
    node.at = std::move(at);
    for (int index = 0; index < ranks; ++index) node.devices.push_back({.index = index});
    node.cards.push_back({.name = "card0", .bitsPerSecond = bitsPerSecond});
    cluster.nodes.push_back(std::move(node));
    return true;
}

/// Names of the groups that the node number `node` is in.
std::vector<std::string> groupsOf(const std::vector<int>& factors, std::int64_t node) {
    const std::size_t depth = factors.size() - 2;
    std::vector<std::string> at(depth);
    std::int64_t group = node / factors[depth];
    for (std::size_t level = depth; level-- > 0;) {
        at[level] = levelName(depth, level) + std::to_string(group);
        group /= factors[level];
    }
    return at;
}

}  // namespace

Result<Cluster> clusterOf(std::string_view nodes, double bitsPerSecond) {
    Cluster cluster;
    std::int64_t total = 0;
    std::size_t depth = 0;
    for (std::string_view rest = nodes;;) {
        const std::size_t plus = rest.find('+');
        auto factors = factorsOf(rest.substr(0, plus));
        if (!factors) return malformed(nodes);
        if (factors->size() == 1) factors->insert(factors->begin(), 1);
        const bool isSum = plus != rest.npos || rest.size() != nodes.size();
        if (factors->size() > 2 && isSum) return malformed(nodes);
        depth = factors->size() - 2;
        std::int64_t count = 1;
        for (std::size_t at = 0; at + 1 < factors->size(); ++at) {
            count *= (*factors)[at];
            if (count > kMostRanks) return malformed(nodes);
        }
        for (std::int64_t node = 0; node < count; ++node) {
            const bool hasRoom =
                addNode(cluster, factors->back(), bitsPerSecond, groupsOf(*factors, node), total);
            if (!hasRoom) return malformed(nodes);
        }
        if (plus == rest.npos) break;
        rest.remove_prefix(plus + 1);
    }
    for (std::size_t level = 0; level < depth; ++level) {
        cluster.levels.push_back({.name = level == 0 ? "cluster" : levelName(depth, level - 1)});
    }
    cluster.levels.push_back({.name = depth == 0 ? "cluster" : levelName(depth, depth - 1)});
    cluster.levels.push_back({.name = "node"});
    return cluster;
}

}  // namespace isthmus::scheduler
