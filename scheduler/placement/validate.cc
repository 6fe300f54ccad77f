#include "scheduler/placement/validate.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "scheduler/search/orders.hpp"

namespace isthmus::scheduler {
namespace {

std::optional<int> nodeNamed(const Cluster& cluster, const std::string& host) {
    for (std::size_t node = 0; node < cluster.nodes.size(); ++node) {
        if (cluster.nodes[node].name == host) return static_cast<int>(node);
    }
    return std::nullopt;
}

/// Hosts of the job when nodes are filled one after another in this sequence.
std::vector<std::string> filled(const Placement& placement, const std::vector<int>& sequence) {
    std::vector<int> ranksOf(placement.cluster.nodes.size());
    for (const Seat& seat : placement.seats) ++ranksOf[static_cast<std::size_t>(seat.node)];
    std::vector<std::string> hosts;
    for (const int node : sequence) {
        const auto at = static_cast<std::size_t>(node);
        hosts.insert(hosts.end(), static_cast<std::size_t>(ranksOf[at]),
                     placement.cluster.nodes[at].name);
    }
    return hosts;
}

std::vector<std::string> hostsOf(const std::vector<RealSeat>& real) {
    std::vector<std::string> hosts;
    for (const RealSeat& seat : real) hosts.push_back(seat.host);
    return hosts;
}

/// Dealt to the nodes in turn.
std::vector<std::string> dealt(std::vector<std::string> filledHosts) {
    std::map<std::string, std::size_t> seen;
    std::vector<std::pair<std::size_t, std::size_t>> keys;  // round, place
    std::map<std::string, std::size_t> places;
    for (const std::string& host : filledHosts) {
        const std::size_t place = places.emplace(host, places.size()).first->second;
        keys.emplace_back(seen[host]++, place);
    }
    std::vector<std::string> byPlace(places.size());
    for (const auto& [host, place] : places) byPlace[place] = host;
    std::sort(keys.begin(), keys.end());
    for (std::size_t at = 0; at < keys.size(); ++at) filledHosts[at] = byPlace[keys[at].second];
    return filledHosts;
}

void explainOrder(const Placement& placement, const std::vector<RealSeat>& real, Verdict& verdict) {
    const std::vector<std::string> hosts = hostsOf(real);
    const std::vector<std::string> asText = filled(placement, textSorted(placement.cluster));
    std::vector<int> sequence(placement.cluster.nodes.size());
    for (std::size_t node = 0; node < sequence.size(); ++node) {
        sequence[node] = static_cast<int>(node);
    }
    const std::vector<std::string> inTurn = filled(placement, sequence);
    const bool differs = asText != inTurn;
    if (differs && hosts == asText) {
        verdict.causes.push_back(
            "hosts are in the order of text (node66 before node7), as torchrun's c10d rendezvous "
            "sorts them, which ignores --node_rank: use --rdzv_backend=static");
    } else if (hosts == inTurn) {
        verdict.causes.push_back("nodes were filled one after another, not as placed");
    } else if (hosts == dealt(inTurn)) {
        verdict.causes.push_back("ranks were dealt to the nodes in turn (cyclic distribution)");
    }
}

void comparePlaces(const Placement& placement, const std::vector<RealSeat>& real,
                   Verdict& verdict) {
    for (std::size_t rank = 0; rank < real.size(); ++rank) {
        const Seat& planned = placement.seats[rank];
        const Node& node = placement.cluster.nodes[static_cast<std::size_t>(planned.node)];
        const bool isThere = real[rank].host == node.name &&
                             (real[rank].device < 0 || real[rank].device == planned.device);
        if (!isThere) verdict.moves.push_back({static_cast<int>(rank), planned, real[rank]});
    }
}

}  // namespace

Verdict validate(const Placement& placement, const std::vector<RealSeat>& real) {
    Verdict verdict;
    if (real.size() != placement.seats.size()) {
        verdict.causes.push_back("the job has " + std::to_string(real.size()) +
                                 " ranks, the placement " + std::to_string(placement.seats.size()));
        return verdict;
    }
    comparePlaces(placement, real, verdict);
    if (!verdict.moves.empty()) explainOrder(placement, real, verdict);
    // Hosts that the topology has not are nodes too: what matters is who is together.
    std::map<std::string, int> numbers;
    std::vector<int> nodeOfRank;
    for (const RealSeat& seat : real) {
        if (numbers.count(seat.host) == 0 && !nodeNamed(placement.cluster, seat.host)) {
            verdict.causes.push_back("host \"" + seat.host + "\" is not in the topology");
        }
        nodeOfRank.push_back(
            numbers.emplace(seat.host, static_cast<int>(numbers.size())).first->second);
    }
    const Result<Weights> weights = weightsOf(placement.degrees, placement.bytes);
    if (!weights.ok()) return verdict;
    verdict.canBeCounted = true;
    verdict.real =
        costOf(Shape(placement.degrees), *weights, nodeOfRank, static_cast<int>(numbers.size()));
    return verdict;
}

int keepSeats(const Placement& before, Placement& after) {
    const Shape old(before.degrees);
    const Shape now(after.degrees);
    // Where the rank with the coordinates of each new rank was, by name; empty when there was none.
    std::vector<std::string> was;
    for (int rank = 0; rank < now.ranks(); ++rank) {
        int same = 0;
        for (const Axis axis : kAxes) {
            const int at = now.coordinate(rank, axis);
            same = same < 0 || at >= old.degree(axis) ? -1 : same + at * old.stride(axis);
        }
        was.push_back(same < 0 ? ""
                               : before.cluster
                                     .nodes[static_cast<std::size_t>(
                                         before.seats[static_cast<std::size_t>(same)].node)]
                                     .name);
    }
    const std::vector<Node>& nodes = after.cluster.nodes;
    std::vector<std::vector<int>> ranks(nodes.size());
    for (std::size_t rank = 0; rank < after.seats.size(); ++rank) {
        ranks[static_cast<std::size_t>(after.seats[rank].node)].push_back(static_cast<int>(rank));
    }
    const auto kept = [&](const std::vector<int>& content, const Node& node) {
        return std::count_if(content.begin(), content.end(), [&](int rank) {
            return was[static_cast<std::size_t>(rank)] == node.name;
        });
    };
    for (bool isBetter = true; isBetter;) {
        isBetter = false;
        for (std::size_t one = 0; one < nodes.size(); ++one) {
            for (std::size_t other = one + 1; other < nodes.size(); ++other) {
                if (nodes[one].size() != nodes[other].size() || nodes[one].at != nodes[other].at) {
                    continue;
                }
                const auto stay = kept(ranks[one], nodes[one]) + kept(ranks[other], nodes[other]);
                const auto then = kept(ranks[one], nodes[other]) + kept(ranks[other], nodes[one]);
                if (then <= stay) continue;
                std::swap(ranks[one], ranks[other]);
                isBetter = true;
            }
        }
    }
    int total = 0;
    for (std::size_t node = 0; node < nodes.size(); ++node) {
        total += static_cast<int>(kept(ranks[node], nodes[node]));
        for (std::size_t at = 0; at < ranks[node].size(); ++at) {
            after.seats[static_cast<std::size_t>(ranks[node][at])] = {
                static_cast<int>(node), nodes[node].devices[at].index};
        }
    }
    return total;
}

}  // namespace isthmus::scheduler
