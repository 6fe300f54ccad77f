#pragma once

#include <cstddef>
#include <vector>

namespace isthmus {

/// What the links of a job cost: the few numbers that every prediction is made from. A value.
///
/// Times are seconds, rates bytes per second of payload. The defaults describe a 2-core machine
/// and 10 Gbit/s Ethernet (limits.md 2, 3 and 5b); they are assumed until somebody measures.
struct LinkModel {
    double wireBytesPerSecond = 1.196e9;  ///< one node's goodput, each way: 10 Gbit/s at MTU 1500
    /// The same by node, where cards differ; empty: `wireBytesPerSecond` each.
    std::vector<double> cardBytesPerSecond;
    /// What the link of an outermost unit of nodes (Layout::byRack) carries each way; 0: anything.
    double rackBytesPerSecond = 0;
    /// Cards of a node, `wireOf` each: its i-th rank uses card i modulo this. All cards i are on
    /// one rail, other rails are reached over a spine.
    int cardsPerNode = 1;
    /// What a rail carries to and from the spine, each way; 0: anything. Instead of racks.
    double railBytesPerSecond = 0;
    double wireLatencySeconds = 15e-6;   ///< one small message between nodes, user to user
    double messageSeconds = 4e-6;        ///< CPU of one message, send plus receive
    double meetSeconds = 1e-6;           ///< one signal-all, wait-all inside a node
    double nodeBytesPerSecond = 30e9;    ///< copied bytes of all ranks of a node together
    double reduceBytesPerSecond = 30e9;  ///< read bytes of reductions of a node together

    double wireOf(std::size_t node) const {
        return node < cardBytesPerSecond.size() ? cardBytesPerSecond[node] : wireBytesPerSecond;
    }
    bool hasRails() const { return cardsPerNode > 1; }
    bool operator==(const LinkModel&) const = default;
};

/// Payload per line byte of TCP at MTU 1500 with timestamps, as a shaper counts: 1448 of each 1514
/// (limits.md 5b).
inline constexpr double kGoodputOfLine = 0.9565;

/// `wireBytesPerSecond` for a line of `bitsPerSecond`.
constexpr double goodputOf(double bitsPerSecond) {
    return bitsPerSecond / 8 * kGoodputOfLine;
}

}  // namespace isthmus
