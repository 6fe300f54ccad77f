#pragma once

#include <cstdint>
#include <vector>

#include <isthmus/types.hpp>

#include "comm/algorithm/catalogue.hpp"
#include "comm/cost/link_model.hpp"

namespace isthmus {

/// Payload bytes that leave and enter one node (or one rank, or one card).
struct WireBytes {
    std::uint64_t egress = 0;
    std::uint64_t ingress = 0;

    std::uint64_t larger() const { return egress > ingress ? egress : ingress; }
    bool operator==(const WireBytes&) const = default;
};

/// What no algorithm can go below.
struct WireBound {
    /// By node: must leave and enter it whatever the others do.
    std::vector<WireBytes> nodes;
    /// The node with most traffic carries at least this, in its busier direction.
    std::uint64_t busiest = 0;
};

/// Least bytes between nodes for one call whose operand has `bytes` (nccl-tests' size; see
/// CallShape). Any layout.
/// Source: collectives.md 2.1. All-reduce: the sum of N operands needs N - 1 operands to move
/// towards it and N - 1 away from it, 2 (N - 1) S in all, so some node carries the mean of them
/// (over nodes that only add too: N counts those with data; each of these sends and receives S);
/// the others: what is missing in a node must enter it, what only it has must leave it.
WireBound wireBound(Collective collective, const Layout& layout, std::uint64_t bytes,
                    Rank root = 0);

/// Least seconds for the same: what each node must move over its own card, or over `cards` of even
/// speed for each that the model knows; for an all-reduce also what all must move over all cards
/// together, since it may be shared out unevenly. Where the model knows the links of racks, what
/// the busiest carries.
double boundSeconds(Collective collective, const Layout& layout, std::uint64_t bytes, Rank root,
                    const LinkModel& model, int cards = 1);

}  // namespace isthmus
