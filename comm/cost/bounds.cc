#include "comm/cost/bounds.hpp"

#include <algorithm>

#include "comm/algorithm/summing.hpp"

namespace isthmus {
namespace {

// floor(bytes * part / whole) without overflow for any operand below 2^64 bytes.
std::uint64_t shareOf(std::uint64_t bytes, std::uint64_t part, std::uint64_t whole) {
    return bytes / whole * part + bytes % whole * part / whole;
}

/// Whether a node has something to send in an all-reduce: it holds data, and another does.
bool hasOperand(const Layout& layout, std::size_t node) {
    const std::vector<bool> holds = nodesWithData(layout);
    return holds[node] && std::count(holds.begin(), holds.end(), true) > 1;
}

// The operands of nodes with data meet and their sum goes back to them: what all cards send.
double totalOfAllReduce(const Layout& layout, std::uint64_t bytes) {
    const std::vector<bool> holds = nodesWithData(layout);
    const auto holding = std::count(holds.begin(), holds.end(), true);
    return 2 * static_cast<double>(holding - 1) * static_cast<double>(bytes);
}

// The mean of that, and what a node with data sends whatever the others do.
std::uint64_t busiestOfAllReduce(const Layout& layout, std::uint64_t bytes) {
    const std::vector<bool> holds = nodesWithData(layout);
    const auto holding = static_cast<std::uint64_t>(std::count(holds.begin(), holds.end(), true));
    if (holding < 2) return 0;
    return std::max(bytes, shareOf(bytes, 2 * (holding - 1), holds.size()));
}

// What node `node` must send and receive, S = bytes, P = ranks, g = ranks of the node.
WireBytes leastOf(Collective collective, const Layout& layout, std::size_t node,
                  std::uint64_t bytes, Rank root) {
    const auto all = static_cast<std::uint64_t>(layout.ranks());
    const std::uint64_t here = layout.nodes[node].size();
    const std::uint64_t mine = shareOf(bytes, here, all);
    const std::uint64_t others = shareOf(bytes, all - here, all);
    const bool hasTheRoot =
        hasRoot(collective) && static_cast<std::size_t>(layout.nodeOf(root)) == node;
    switch (collective) {
    case Collective::kAllReduce:
        return hasOperand(layout, node) ? WireBytes{bytes, bytes} : WireBytes{};
    case Collective::kAllGather:
        return {mine, others};
    case Collective::kReduceScatter:
        return {others, mine};
    case Collective::kAllToAll:
        return {others * here, others * here};
    case Collective::kBroadcast:
        return hasTheRoot ? WireBytes{bytes, 0} : WireBytes{0, bytes};
    case Collective::kReduce:
        return hasTheRoot ? WireBytes{0, bytes} : WireBytes{bytes, 0};
    case Collective::kGather:
        return hasTheRoot ? WireBytes{0, others} : WireBytes{mine, 0};
    case Collective::kScatter:
        return hasTheRoot ? WireBytes{others, 0} : WireBytes{0, mine};
    case Collective::kBarrier:
        break;
    }
    return {};
}

}  // namespace

WireBound wireBound(Collective collective, const Layout& layout, std::uint64_t bytes, Rank root) {
    WireBound bound;
    const std::uint64_t nodes = layout.nodes.size();
    bound.nodes.resize(nodes);
    if (nodes < 2) return bound;
    for (std::size_t node = 0; node < nodes; ++node) {
        bound.nodes[node] = leastOf(collective, layout, node, bytes, root);
        bound.busiest = std::max(bound.busiest, bound.nodes[node].larger());
    }
    if (collective == Collective::kAllReduce) bound.busiest = busiestOfAllReduce(layout, bytes);
    return bound;
}

double boundSeconds(Collective collective, const Layout& layout, std::uint64_t bytes, Rank root,
                    const LinkModel& model, int cards) {
    const WireBound bound = wireBound(collective, layout, bytes, root);
    double seconds = 0;
    double together = 0;
    for (std::size_t node = 0; node < bound.nodes.size(); ++node) {
        const double rate = model.wireOf(node) * cards * model.cardsPerNode;
        seconds = std::max(seconds, static_cast<double>(bound.nodes[node].larger()) / rate);
        together += rate;
    }
    if (!layout.racks.empty() && model.rackBytesPerSecond > 0) {
        const std::uint64_t between = wireBound(collective, layout.byRack(), bytes, root).busiest;
        seconds = std::max(seconds, static_cast<double>(between) / model.rackBytesPerSecond);
    }
    if (collective != Collective::kAllReduce || together <= 0) return seconds;
    return std::max(seconds, totalOfAllReduce(layout, bytes) / together);
}

}  // namespace isthmus
