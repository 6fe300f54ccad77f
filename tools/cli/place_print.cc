#include "tools/cli/place_print.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "scheduler/search/bound.hpp"
#include "tools/cli/place_predicted.hpp"

namespace isthmus::cli {
namespace {

using scheduler::Axis;
using scheduler::kAxes;
using scheduler::Placement;
using scheduler::Shape;

// More would scroll away what matters; --json has them all.
constexpr std::size_t kMostRows = 40;

std::string headText(const Placement& placement) {
    std::string text = fmt::format("{} on {} ({} ranks)\n", textOf(placement.degrees),
                                   placement.cluster.text(), placement.seats.size());
    text += fmt::format("dearest node  {:>15} bytes a step; no assignment has less than {}{}\n",
                        placement.cost.most, placement.bound.most,
                        placement.isOptimal ? ": optimal" : "");
    text += fmt::format("all nodes     {:>15} bytes a step{}\n", placement.cost.sum,
                        placement.isSumOptimal ? ", the least" : "");
    return text + "found by      " + placement.method + "\n";
}

std::string nodesText(const Placement& placement) {
    const Shape shape(placement.degrees);
    const auto count = static_cast<int>(placement.cluster.nodes.size());
    const auto bytes = bytesOfNodes(shape, placement.bytes, placement.nodeOfRank(), count);
    std::string text = fmt::format("\n{:<16}", "node");
    for (const Axis axis : kAxes) {
        if (placement.isNamed[axis]) text += fmt::format(" {:>14}", nameOf(axis));
    }
    const bool hasRates =
        std::all_of(placement.cluster.nodes.begin(), placement.cluster.nodes.end(),
                    [](const scheduler::Node& node) { return node.bitsPerSecond() > 0; });
    text += fmt::format(" {:>14}{}  ranks\n", "out = in", hasRates ? "     card ms" : "");
    std::vector<std::string> ranks(bytes.size());
    for (std::size_t rank = 0; rank < placement.seats.size(); ++rank) {
        std::string& list = ranks[static_cast<std::size_t>(placement.seats[rank].node)];
        if (list.size() > 60) continue;
        list += (list.empty() ? "" : " ") + std::to_string(rank);
        if (list.size() > 60) list += " ...";
    }
    for (std::size_t node = 0; node < std::min(bytes.size(), kMostRows); ++node) {
        text += fmt::format("{:<16}", placement.cluster.nodes[node].name);
        std::int64_t sum = 0;
        for (const Axis axis : kAxes) {
            sum += bytes[node][axis];
            if (placement.isNamed[axis]) text += fmt::format(" {:>14}", bytes[node][axis]);
        }
        text += fmt::format(" {:>14}", sum);
        if (hasRates) {
            const double seconds =
                8 * static_cast<double>(sum) / placement.cluster.nodes[node].bitsPerSecond();
            text += fmt::format(" {:>11.3f}", 1e3 * seconds);
        }
        text += fmt::format("  {}\n", ranks[node]);
    }
    if (bytes.size() > kMostRows) {
        text += fmt::format("... {} nodes more\n", bytes.size() - kMostRows);
    }
    return text;
}

std::string savedOf(std::int64_t theirs, std::int64_t ours) {
    if (theirs == ours) return "-";
    if (ours == 0) return "all";
    return fmt::format("{:.1f} %",
                       100.0 * static_cast<double>(theirs - ours) / static_cast<double>(theirs));
}

/// How many groups of the axis are on more than one node.
std::size_t cutGroups(const Placement& placement, Axis axis, std::size_t& all) {
    const auto groups = groupsOf(placement, axis);
    all = groups.size();
    return static_cast<std::size_t>(
        std::count_if(groups.begin(), groups.end(), [&](const std::vector<int>& group) {
            return std::any_of(group.begin(), group.end(), [&](int rank) {
                return placement.seats[static_cast<std::size_t>(rank)].node !=
                       placement.seats[static_cast<std::size_t>(group.front())].node;
            });
        }));
}

}  // namespace

std::string comparisonText(const Placement& placement) {
    const bool hasExact = !placement.orders.empty() && placement.orders.front().exact;
    std::string text =
        fmt::format("\n{:<48} {:>15} {:>15}  {:<28}{}\n", "order", "dearest node", "all nodes",
                    "placed saves (dearest, all)", hasExact ? "     exact dearest" : "");
    for (const scheduler::OrderCost& order : placement.orders) {
        const std::string saved = savedOf(order.cost.most, placement.cost.most) + ", " +
                                  savedOf(order.cost.sum, placement.cost.sum);
        text += fmt::format("{:<48} {:>15} {:>15}  ", order.name, order.cost.most, order.cost.sum);
        text += hasExact ? fmt::format("{:<28} {:>17}\n", saved, order.exact->most) : saved + "\n";
    }
    return text;
}

std::string placementText(const Placed& placed) {
    std::string text = headText(placed.placement);
    if (placed.search.matrices > 0) {
        text += fmt::format("looked at     every one of {} level matrices of {} degrees\n",
                            placed.search.matrices, placed.search.degreesTried);
    }
    if (!placed.search.isComplete) text += "stopped       this is the best so far\n";
    text += predictedText(placed.placement);
    text += nodesText(placed.placement) + comparisonText(placed.placement);
    if (!placed.others.empty()) text += "\nother degrees\n";
    for (const scheduler::Candidate& each : placed.others) {
        text += fmt::format("{:<48} {:>15} {:>15}\n", textOf(each.degrees), each.cost.most,
                            each.cost.sum);
    }
    return text;
}

std::string explanationText(const Placement& placement) {
    std::string text = headText(placement) + predictedText(placement) + nodesText(placement) +
                       exactNodesText(placement) + "\nwhat decided\n";
    const Result<scheduler::Weights> weights = weightsOf(placement.degrees, placement.bytes);
    std::vector<Axis> axes;
    for (const Axis axis : kAxes) {
        if (placement.degrees[axis] > 1) axes.push_back(axis);
    }
    std::stable_sort(axes.begin(), axes.end(), [&](Axis left, Axis right) {
        return placement.bytes[left] > placement.bytes[right];
    });
    for (const Axis axis : axes) {
        std::size_t all = 0;
        const std::size_t cut = cutGroups(placement, axis, all);
        text += fmt::format(
            "{:<8} {} of {} groups of {} are on several nodes; one that is costs "
            "each of its nodes at least {} bytes\n",
            nameOf(axis), cut, all, placement.degrees[axis], placement.bytes[axis]);
    }
    if (!weights.ok()) return text;
    const Shape shape(placement.degrees);
    const std::vector<int> sizes = placement.cluster.sizes();
    for (const Axis axis : axes) {
        if (weights->of[axis] == 0) continue;
        const std::int64_t least = weights->bytes(costOfSplit(shape, *weights, sizes, axis));
        if (least <= placement.cost.most) continue;
        text += fmt::format("no group of {} may be cut: a node would pay {} at least\n",
                            nameOf(axis), least);
    }
    return text;
}

std::string verdictText(const Placement& placement, const scheduler::Verdict& verdict) {
    if (verdict.holds()) {
        return fmt::format("all {} ranks are where they were placed\n", placement.seats.size());
    }
    std::string text;
    for (const std::string& cause : verdict.causes) text += cause + "\n";
    if (!verdict.moves.empty()) {
        text += fmt::format("{} of {} ranks are elsewhere\n", verdict.moves.size(),
                            placement.seats.size());
    }
    for (std::size_t at = 0; at < std::min(verdict.moves.size(), kMostRows); ++at) {
        const scheduler::Verdict::Move& move = verdict.moves[at];
        const auto node = static_cast<std::size_t>(move.planned.node);
        text += fmt::format("rank {:<8} planned {}:{}, is on {}{}\n", move.rank,
                            placement.cluster.nodes[node].name, move.planned.device, move.real.host,
                            move.real.device < 0 ? "" : ":" + std::to_string(move.real.device));
    }
    if (verdict.moves.size() > kMostRows) {
        text += fmt::format("... {} more\n", verdict.moves.size() - kMostRows);
    }
    if (verdict.canBeCounted) {
        text += fmt::format("dearest node {} bytes a step, placed {}; all nodes {}, placed {}\n",
                            verdict.real.most, placement.cost.most, verdict.real.sum,
                            placement.cost.sum);
    }
    return text;
}

std::string verdictJson(const Placement& placement, const scheduler::Verdict& verdict) {
    nlohmann::ordered_json json = {{"holds", verdict.holds()},
                                   {"causes", verdict.causes},
                                   {"placed_max_node_egress", placement.cost.most},
                                   {"placed_sum_node_egress", placement.cost.sum}};
    if (verdict.canBeCounted) {
        json["max_node_egress"] = verdict.real.most;
        json["sum_node_egress"] = verdict.real.sum;
    }
    json["moved"] = nlohmann::ordered_json::array();
    for (const scheduler::Verdict::Move& move : verdict.moves) {
        const auto node = static_cast<std::size_t>(move.planned.node);
        nlohmann::ordered_json each = {{"rank", move.rank},
                                       {"planned_node", placement.cluster.nodes[node].name},
                                       {"planned_device", move.planned.device},
                                       {"node", move.real.host}};
        if (move.real.device >= 0) each["device"] = move.real.device;
        json["moved"].push_back(std::move(each));
    }
    return json.dump(2) + "\n";
}

}  // namespace isthmus::cli
