#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/prediction/groups.hpp"
#include "scheduler/traffic/collective_bytes.hpp"
#include "scheduler/traffic/node_cost.hpp"

namespace isthmus::scheduler {

/// What a node sends and receives in a step, by what it is for.
struct NodeBytes {
    std::array<NodeTraffic, kSpans.size()> spans;
    NodeTraffic pipe;

    NodeTraffic all() const;
    NodeTraffic& operator[](Span span) { return spans[static_cast<std::size_t>(span)]; }
    const NodeTraffic& operator[](Span span) const { return spans[static_cast<std::size_t>(span)]; }
};

/// How collectives go between nodes.
enum class Way : std::uint8_t {
    kFlatRing,  ///< round one ring that leaves each node once
    kTwoLevel,  ///< inside the nodes first, one copy between them
};

/// Counts every call of every group that a step has, whatever axes its groups are spread over, and
/// every message of the pipes; all-to-alls go from each member to each. Exact to the byte.
std::vector<NodeBytes> bytesOfNodes(const AxisVolumes& volumes, std::span<const int> nodeOfRank,
                                    int nodes, Way way = Way::kFlatRing);

/// The dearest node and all of them together.
NodeCost costOf(const std::vector<NodeBytes>& nodes);

}  // namespace isthmus::scheduler
