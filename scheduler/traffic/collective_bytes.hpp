#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace isthmus::scheduler {

/// What one collective of one group moves between nodes, in payload bytes. `members[i]` ranks of
/// the group are on node i (0: the node has none); `bytes` is the full buffer: the operand of an
/// all-reduce, the output of an all-gather, the input of a reduce-scatter, what one rank sends in
/// an all-to-all (its own block counted). Source: scheduler.md, 4.1 and 4.2.
struct NodeTraffic {
    std::int64_t egress = 0;
    std::int64_t ingress = 0;

    bool operator==(const NodeTraffic&) const = default;
};

enum class Transfer : std::uint8_t { kAllReduce, kAllGather, kReduceScatter, kAllToAll };

/// Round one ring of all ranks, of which the order leaves node i `exits[i]` times (empty: once, the
/// members of a node stand together). Pieces are of equal size, the first bytes % ranks of them one
/// byte longer; position 0 of the ring is the first member of the first node that has one. With an
/// all-to-all, which has no ring, `exits` has no meaning.
/// Only orders that leave every node once are exact to the byte; others count mean pieces, rounded
/// up.
std::vector<NodeTraffic> flatTraffic(Transfer transfer, std::int64_t bytes,
                                     std::span<const int> members, std::span<const int> exits = {});

/// Two levels: inside the nodes first, then directly between the nodes that have members, then
/// inside. `shares` are the bytes that each node owns of an all-reduce and sum up to `bytes`;
/// empty: even ones among the nodes that have members. An all-gather's node owns what its ranks
/// contribute.
std::vector<NodeTraffic> twoLevelTraffic(Transfer transfer, std::int64_t bytes,
                                         std::span<const int> members,
                                         std::span<const std::int64_t> shares = {});

/// Shares of an all-reduce so that all cards are busy equally long, as far as that is possible:
/// egress of a node is S + (m - 2) w for its share w (collectives.md, 2.4). Zero rates are refused
/// by even shares. Two nodes send S whatever they own.
std::vector<std::int64_t> sharesByRate(std::int64_t bytes, std::span<const double> bitsPerSecond);

/// Copies of `tokens` of `bytes` that leave a node when each goes to `choices` experts, evenly
/// spread over `nodes` nodes, and is sent once to every other node that wants it: the expected
/// number, from (m - 1) (1 - (1 - 1/m)^K) of a token, rounded up.
std::int64_t dispatchOncePerNode(std::int64_t tokens, std::int64_t bytes, int nodes, int choices);

/// The same without that: K (m - 1) / m of a token.
std::int64_t dispatchToExperts(std::int64_t tokens, std::int64_t bytes, int nodes, int choices);

/// What one rank sends round a flat ring for it: 2 (k - 1) / k of an all-reduce's operand, half of
/// that otherwise; rounded up.
std::int64_t ringBytesOfRank(Transfer transfer, std::int64_t bytes, int ranks);

}  // namespace isthmus::scheduler
