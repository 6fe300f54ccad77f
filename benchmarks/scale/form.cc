#include "benchmarks/scale/form.hpp"

#include <algorithm>

#include "comm/cost/closed_form.hpp"

namespace isthmus::scale {
namespace {

constexpr std::string_view kLevels = "two_level_";

/// Messages that all leave at once, whatever the order.
bool isExchange(std::string_view flat) {
    return flat == "pairwise" || flat == "pairwise_copied" || flat == "node_first" ||
           flat == "rail_first";
}

}  // namespace

std::optional<FormSeconds> formOf(Collective collective, std::string_view algorithm,
                                  const Topology& topology, std::uint64_t bytes) {
    const bool isLevels = algorithm.starts_with(kLevels);
    const auto nodes = static_cast<int>(topology.layout.nodes.size());
    const auto ranksOfNode = static_cast<double>(topology.layout.nodes.front().size());
    if (!isLevels && ranksOfNode > 1) return std::nullopt;
    const std::string_view flat = isLevels ? algorithm.substr(kLevels.size()) : algorithm;
    if (flat == "double_tree" || flat == "ordered") return std::nullopt;
    const bool isAllToAll = collective == Collective::kAllToAll;
    const double share = static_cast<double>(bytes) / (isAllToAll ? 1 : ranksOfNode);
    std::optional<FlatCost> cost =
        flatCost(collective, isExchange(flat) ? "exchange" : flat, nodes, share);
    if (!cost) return std::nullopt;
    if (flat.starts_with("pairwise")) cost->messages *= ranksOfNode;
    const LinkModel& model = topology.model;
    const double sharing = ranksOfNode / model.cardsPerNode;
    const double wire = cost->sentBytes * sharing / model.wireBytesPerSecond;
    const double processor = cost->messages * model.messageSeconds;
    const double latency = cost->rounds * model.wireLatencySeconds;
    const double most = latency + wire + processor;
    // Receives may be asked for before anything comes: half of the work on messages. One rail of
    // those that share a card waits while the others use it, and so does one way round a ring.
    const double busy = std::max(wire / sharing, processor / 2);
    double least = latency + busy;
    if (flat == "bidirectional_ring") least = std::max(latency, busy);
    if (!hasRoot(collective)) least = std::max(least, wire);
    return FormSeconds{least, most, cost->messages};
}

}  // namespace isthmus::scale
