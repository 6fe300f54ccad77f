#include "scheduler/traffic/collective_bytes.hpp"

#include <algorithm>
#include <numeric>

#include "comm/base/assert.hpp"

namespace isthmus::scheduler {
namespace {

__extension__ using Wide = __int128;  // products of bytes and ranks

std::int64_t ceilOf(Wide numerator, Wide denominator) {
    return static_cast<std::int64_t>((numerator + denominator - 1) / denominator);
}

/// Where part `part` of `parts` begins when the first ones are a byte longer.
std::int64_t beginOf(std::int64_t bytes, std::int64_t part, std::int64_t parts) {
    return bytes / parts * part + std::min(bytes % parts, part);
}

std::int64_t sumOf(std::span<const int> members) {
    return std::accumulate(members.begin(), members.end(), std::int64_t{0});
}

int nodesWithMembers(std::span<const int> members) {
    return static_cast<int>(
        std::count_if(members.begin(), members.end(), [](int count) { return count > 0; }));
}

std::vector<NodeTraffic> pairTraffic(std::int64_t bytes, std::span<const int> members) {
    const std::int64_t ranks = sumOf(members);
    std::vector<NodeTraffic> nodes;
    for (const int count : members) {
        const std::int64_t moved = ceilOf(Wide(bytes) * count * (ranks - count), ranks);
        nodes.push_back({moved, moved});
    }
    return nodes;
}

/// Each pass round the ring carries every piece over every edge but one: that before the piece's
/// owner in a reduce-scatter, that into its origin in an all-gather.
NodeTraffic ringOnce(Transfer transfer, std::int64_t bytes, std::int64_t first, std::int64_t count,
                     std::int64_t ranks) {
    const auto piece = [&](std::int64_t position) {
        const std::int64_t at = position % ranks;
        return beginOf(bytes, at + 1, ranks) - beginOf(bytes, at, ranks);
    };
    const std::int64_t last = first + count - 1;
    NodeTraffic node;
    if (transfer != Transfer::kAllGather) {  // position p ends with piece p and never sends it on
        node.egress += bytes - piece(last);
        node.ingress += bytes - piece(first + ranks - 1);
    }
    if (transfer != Transfer::kReduceScatter) {  // piece p starts at position p and stops before it
        node.egress += bytes - piece(last + 1);
        node.ingress += bytes - piece(first);
    }
    return node;
}

}  // namespace

std::vector<NodeTraffic> flatTraffic(Transfer transfer, std::int64_t bytes,
                                     std::span<const int> members, std::span<const int> exits) {
    if (nodesWithMembers(members) < 2) return std::vector<NodeTraffic>(members.size());
    if (transfer == Transfer::kAllToAll) return pairTraffic(bytes, members);
    const std::int64_t ranks = sumOf(members);
    const int passes = transfer == Transfer::kAllReduce ? 2 : 1;
    std::vector<NodeTraffic> nodes;
    std::int64_t first = 0;
    for (std::size_t node = 0; node < members.size(); ++node) {
        const int leaves = exits.empty() ? 1 : exits[node];
        ISTHMUS_ASSERT(leaves <= std::max(members[node], 1));
        if (members[node] == 0) {
            nodes.push_back({});
        } else if (leaves == 1) {
            nodes.push_back(ringOnce(transfer, bytes, first, members[node], ranks));
        } else {
            const std::int64_t moved = ceilOf(Wide(bytes) * passes * leaves * (ranks - 1), ranks);
            nodes.push_back({moved, moved});
        }
        first += members[node];
    }
    return nodes;
}

std::vector<NodeTraffic> twoLevelTraffic(Transfer transfer, std::int64_t bytes,
                                         std::span<const int> members,
                                         std::span<const std::int64_t> shares) {
    const int with = nodesWithMembers(members);
    if (with < 2) return std::vector<NodeTraffic>(members.size());
    if (transfer == Transfer::kAllToAll) return pairTraffic(bytes, members);
    const std::int64_t ranks = sumOf(members);
    std::vector<NodeTraffic> nodes;
    std::int64_t first = 0;
    int number = 0;
    for (std::size_t node = 0; node < members.size(); ++node) {
        const std::int64_t next = first + members[node];
        std::int64_t own = beginOf(bytes, next, ranks) - beginOf(bytes, first, ranks);
        first = next;
        if (members[node] == 0) {
            nodes.push_back({});
            continue;
        }
        if (transfer == Transfer::kAllReduce) {
            own = beginOf(bytes, number + 1, with) - beginOf(bytes, number, with);
            if (!shares.empty()) own = shares[node];
        }
        ++number;
        // Away: its part of every other share. Back: its share to every other node.
        const std::int64_t away = bytes - own;
        const std::int64_t back = own * (with - 1);
        NodeTraffic moved;
        if (transfer != Transfer::kAllGather) moved = {away, back};
        if (transfer != Transfer::kReduceScatter)
            moved = {moved.egress + back, moved.ingress + away};
        nodes.push_back(moved);
    }
    return nodes;
}

std::vector<std::int64_t> sharesByRate(std::int64_t bytes, std::span<const double> bitsPerSecond) {
    const auto nodes = static_cast<std::int64_t>(bitsPerSecond.size());
    std::vector<std::int64_t> shares;
    const bool isKnown = std::all_of(bitsPerSecond.begin(), bitsPerSecond.end(),
                                     [](double rate) { return rate > 0; });
    if (nodes < 3 || !isKnown) {
        for (std::int64_t node = 0; node < nodes; ++node) {
            shares.push_back(beginOf(bytes, node + 1, nodes) - beginOf(bytes, node, nodes));
        }
        return shares;
    }
    const auto whole = static_cast<double>(bytes);
    const auto shareAt = [&](double time, double rate) {
        return std::clamp((time * rate - whole) / static_cast<double>(nodes - 2), 0.0, whole);
    };
    double low = 0;
    double high = 2 * whole * static_cast<double>(nodes) /
                  *std::min_element(bitsPerSecond.begin(), bitsPerSecond.end());
    for (int round = 0; round < 200; ++round) {
        const double time = (low + high) / 2;
        double owned = 0;
        for (const double rate : bitsPerSecond) owned += shareAt(time, rate);
        (owned < whole ? low : high) = time;
    }
    std::int64_t left = bytes;
    for (const double rate : bitsPerSecond) {
        shares.push_back(std::min(left, static_cast<std::int64_t>(shareAt(high, rate))));
        left -= shares.back();
    }
    // What rounding left goes to the fastest: it feels it least.
    const auto fastest = std::max_element(bitsPerSecond.begin(), bitsPerSecond.end());
    shares[static_cast<std::size_t>(fastest - bitsPerSecond.begin())] += left;
    return shares;
}

std::int64_t dispatchOncePerNode(std::int64_t tokens, std::int64_t bytes, int nodes, int choices) {
    // (1 - 1/m)^K in 62 bits behind the point.
    constexpr Wide kOne = Wide{1} << 62;
    Wide missed = kOne;
    for (int choice = 0; choice < choices; ++choice) missed = missed * (nodes - 1) / nodes;
    const Wide reached = (kOne - missed) * (nodes - 1);
    // Up to 2^50 token bytes leave room for the product.
    const Wide volume = Wide(tokens) * bytes;
    return ceilOf((reached >> 22) * volume, Wide{1} << 40);
}

std::int64_t dispatchToExperts(std::int64_t tokens, std::int64_t bytes, int nodes, int choices) {
    return ceilOf(Wide(tokens) * bytes * choices * (nodes - 1), nodes);
}

std::int64_t ringBytesOfRank(Transfer transfer, std::int64_t bytes, int ranks) {
    const int passes = transfer == Transfer::kAllReduce ? 2 : 1;
    return ceilOf(Wide(bytes) * passes * (ranks - 1), ranks);
}

}  // namespace isthmus::scheduler
