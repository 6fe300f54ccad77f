#include "tools/cli/probe_result.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "comm/cost/link_model.hpp"

namespace isthmus::cli {
namespace {

// Streams of 0.1 s on idle machines repeat within 2 %; computing on shared processors within 15 %.
constexpr double kAlikeRates = 0.06;
constexpr double kAlikeFlops = 0.25;
// One communicator that gets less than this of what a node can do is limited by itself.
constexpr double kCapped = 0.8;
constexpr int kBusyShare = 16;

double median(std::vector<double> values) {
    if (values.empty()) return 0;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

double medianRate(const std::vector<ProbeStream>& streams) {
    std::vector<double> rates;
    for (const ProbeStream& stream : streams) rates.push_back(stream.bytesPerSecond);
    return median(std::move(rates));
}

/// The first rank of each node.
std::vector<const ProbeRank*> leadersOf(const std::vector<ProbeRank>& ranks) {
    std::vector<const ProbeRank*> leaders;
    for (const ProbeRank& rank : ranks) {
        if (rank.localRank == 0) leaders.push_back(&rank);
    }
    return leaders;
}

std::vector<scheduler::Device> devicesOf(const std::vector<ProbeRank>& ranks,
                                         const std::vector<double>& flops, int node) {
    std::vector<scheduler::Device> devices;
    for (std::size_t at = 0; at < ranks.size(); ++at) {
        if (ranks[at].node != node) continue;
        scheduler::Device device;
        device.index = static_cast<int>(devices.size());
        if (!ranks[at].hasAccelerator) {
            device.flopsPerSecond = std::round(flops[at]);
            device.memoryBytes = ranks[at].memoryBytes;
        }
        devices.push_back(device);
    }
    for (scheduler::Device& device : devices) {
        device.memoryBytes /= static_cast<std::int64_t>(devices.size());
    }
    return devices;
}

/// Operations a second of each rank while all compute. The share of a processor is the same for all
/// that are equally crowded: what a single rank got in a moment is chance.
std::vector<double> flopsOf(const std::vector<ProbeRank>& ranks) {
    std::map<int, int> ranksOfNode;
    for (const ProbeRank& rank : ranks) ++ranksOfNode[rank.node];
    std::vector<double> shares;
    std::vector<double> rooms;
    for (const ProbeRank& rank : ranks) {
        shares.push_back(rank.processorShare);
        rooms.push_back(static_cast<double>(rank.processors) / ranksOfNode[rank.node]);
    }
    std::vector<double> flops;
    for (std::size_t at = 0; at < ranks.size(); ++at) {
        const double share = median(shares) * rooms[at] / median(rooms);
        flops.push_back(ranks[at].flopsOfProcessor * std::min(share, 1.0));
    }
    return levelled(flops, kAlikeFlops);
}

/// "row0/rack3" as groups, outermost first; none of nothing.
std::vector<std::string> groupsOf(const std::string& path) {
    std::vector<std::string> groups;
    for (std::size_t begin = 0; begin < path.size();) {
        const std::size_t end = std::min(path.find('/', begin), path.size());
        groups.push_back(path.substr(begin, end - begin));
        begin = end + 1;
    }
    return groups;
}

/// Hosts' names; those of several nodes get a number.
std::vector<std::string> namesOf(const std::vector<const ProbeRank*>& leaders) {
    std::vector<std::string> names;
    std::map<std::string, int> seen;
    for (const ProbeRank* leader : leaders) {
        const int before = seen[leader->host]++;
        names.push_back(before == 0 ? leader->host
                                    : leader->host + "-" + std::to_string(before + 1));
    }
    return names;
}

std::vector<double> lineRates(const ProbeReadings& readings,
                              const std::vector<const ProbeRank*>& leaders) {
    const auto nodes = static_cast<int>(leaders.size());
    std::vector<ProbeStream> all = readings.alone;
    all.insert(all.end(), readings.ofNodes.begin(), readings.ofNodes.end());
    std::vector<double> rates = cardsOf(all, nodes);
    for (std::size_t node = 0; node < leaders.size(); ++node) {
        rates[node] = lineBitsPerSecond(rates[node], leaders[node]->unitBytes);
    }
    return levelled(rates, kAlikeRates);
}

}  // namespace

std::vector<std::vector<std::pair<int, int>>> meetingsOf(int nodes) {
    std::vector<std::vector<std::pair<int, int>>> steps;
    for (int distance = 1; distance < nodes && distance <= std::max(nodes / 2, 1); distance *= 2) {
        // Senders of a step stand so far apart that none of them receives in it.
        const int gap = std::min(nodes, std::max(kBusyShare, 2 * distance));
        std::vector<std::pair<int, int>> late;  // those that close the circle
        for (int slot = 0; slot < gap; ++slot) {
            std::vector<std::pair<int, int>> step;
            for (int node = slot; node < nodes; node += gap) {
                const int to = (node + distance) % nodes;
                const bool isBusy =
                    std::any_of(step.begin(), step.end(), [to](const std::pair<int, int>& pair) {
                        return pair.first == to || pair.second == to;
                    });
                (isBusy ? late : step).emplace_back(node, to);
            }
            steps.push_back(std::move(step));
        }
        for (const std::pair<int, int>& pair : late) steps.push_back({pair});
    }
    return steps;
}

std::vector<double> cardsOf(const std::vector<ProbeStream>& streams, int nodes) {
    std::vector<double> rates(static_cast<std::size_t>(nodes), 0.0);
    for (const ProbeStream& stream : streams) {
        for (const int node : {stream.fromNode, stream.toNode}) {
            double& rate = rates[static_cast<std::size_t>(node)];
            rate = std::max(rate, stream.bytesPerSecond);
        }
    }
    return rates;
}

std::vector<int> uncertainNodes(const std::vector<double>& bytesPerSecond,
                                const std::vector<ProbeStream>& streams) {
    std::vector<int> uncertain;
    const double fastest = *std::max_element(bytesPerSecond.begin(), bytesPerSecond.end());
    for (std::size_t node = 0; node < bytesPerSecond.size(); ++node) {
        const double own = bytesPerSecond[node] * (1 + kAlikeRates);
        if (own >= fastest) continue;
        const auto me = static_cast<int>(node);
        const bool metFaster =
            std::any_of(streams.begin(), streams.end(), [&](const ProbeStream& stream) {
                const int other = stream.fromNode == me ? stream.toNode : stream.fromNode;
                const bool isMine = stream.fromNode == me || stream.toNode == me;
                return isMine && bytesPerSecond[static_cast<std::size_t>(other)] > own;
            });
        if (!metFaster) uncertain.push_back(me);
    }
    return uncertain;
}

std::vector<double> levelled(const std::vector<double>& values, double share) {
    std::vector<std::size_t> order(values.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(),
              [&](std::size_t left, std::size_t right) { return values[left] < values[right]; });
    std::vector<double> level(values.size());
    for (std::size_t begin = 0; begin < order.size();) {
        std::size_t end = begin;
        while (end < order.size() && values[order[end]] <= values[order[begin]] * (1 + share)) {
            ++end;
        }
        for (std::size_t at = begin; at < end; ++at) {
            level[order[at]] = values[order[begin + (end - begin) / 2]];
        }
        begin = end;
    }
    return level;
}

double lineBitsPerSecond(double bytesPerSecond, std::int64_t unitBytes) {
    // RFC 9293, 791 and 7323: 20 + 20 + 12 bytes of headers in the packet; IEEE 802.3: 14 before.
    constexpr double kHeaders = 52;
    constexpr double kFrame = 14;
    const auto unit = static_cast<double>(unitBytes);
    const double share = unitBytes > 100 ? (unit - kHeaders) / (unit + kFrame) : kGoodputOfLine;
    return 8 * bytesPerSecond / share;
}

scheduler::Cluster clusterOf(const ProbeReadings& readings) {
    const std::vector<const ProbeRank*> leaders = leadersOf(readings.ranks);
    const std::vector<std::string> names = namesOf(leaders);
    const std::vector<double> lines = lineRates(readings, leaders);
    const std::vector<double> flops = flopsOf(readings.ranks);
    const std::size_t depth = groupsOf(leaders.front()->rack).size();
    const bool hasGroups = std::all_of(
        leaders.begin(), leaders.end(),
        [depth](const ProbeRank* each) { return groupsOf(each->rack).size() == depth; });
    scheduler::Cluster cluster;
    for (std::size_t at = 0; at < leaders.size(); ++at) {
        scheduler::Node node;
        node.name = names[at];
        if (hasGroups) node.at = groupsOf(leaders[at]->rack);
        node.devices = devicesOf(readings.ranks, flops, leaders[at]->node);
        const std::string& card = leaders[at]->card;
        if (!card.empty()) node.cards = {{card, std::round(lines[at]), 0}};
        cluster.nodes.push_back(std::move(node));
    }
    for (std::size_t level = 0; level <= (hasGroups ? depth : 0); ++level) {
        cluster.levels.push_back(
            {.name = level == 0 ? "cluster" : (level == depth ? "rack" : "row"),
             .latencySeconds = median(readings.acrossLatencySeconds)});
    }
    cluster.levels.push_back(
        {.name = "node",
         .latencySeconds = median(readings.insideLatencySeconds),
         .bitsPerSecond = std::round(8 * median(readings.insideBytesPerSecond))});
    const double one = medianRate(readings.alone);
    const double all = medianRate(readings.ofNodes);
    if (one > 0 && one < kCapped * all) {
        cluster.communicatorBitsPerSecond =
            std::round(lineBitsPerSecond(one, leaders.front()->unitBytes));
    }
    sortNodes(cluster);
    return cluster;
}

std::string probeText(const ProbeReadings& readings, const scheduler::Cluster& cluster) {
    std::string text = fmt::format("{:<16} {:>5} {:<10} {:>14} {:>16} {:>14}\n", "node", "ranks",
                                   "card", "Gbit/s", "Gflop/s a rank", "MB a rank");
    for (const scheduler::Node& node : cluster.nodes) {
        const scheduler::Device& device = node.devices.front();
        text += fmt::format("{:<16} {:>5} {:<10} {:>14.3f} {:>16.1f} {:>14.0f}\n", node.name,
                            node.size(), node.cards.empty() ? "-" : node.cards.front().name,
                            node.bitsPerSecond() / 1e9, device.flopsPerSecond / 1e9,
                            static_cast<double>(device.memoryBytes) / 1e6);
    }
    const scheduler::Level& inside = cluster.levels.back();
    if (inside.bitsPerSecond > 0) {
        text += fmt::format("inside a node   {:.1f} Gbit/s from rank to rank, {:.1f} us\n",
                            inside.bitsPerSecond / 1e9, 1e6 * inside.latencySeconds);
    }
    if (cluster.nodes.size() > 1) {
        text += fmt::format(
            "between nodes   {:.1f} us; one pair of nodes has {:.3f} GB/s of "
            "payload, {:.3f} while all nodes send\n",
            1e6 * cluster.levels.front().latencySeconds, medianRate(readings.alone) / 1e9,
            medianRate(readings.together) / 1e9);
    }
    if (cluster.communicatorBitsPerSecond > 0) {
        text += fmt::format("one rank gets {:.3f} Gbit/s of its node's card\n",
                            cluster.communicatorBitsPerSecond / 1e9);
    }
    const bool hasAccelerators =
        std::any_of(readings.ranks.begin(), readings.ranks.end(),
                    [](const ProbeRank& rank) { return rank.hasAccelerator; });
    if (hasAccelerators) {
        text +=
            "there are accelerators, which are not timed: give their flops_per_second and "
            "memory_bytes in the file\n";
    }
    return text;
}

}  // namespace isthmus::cli
