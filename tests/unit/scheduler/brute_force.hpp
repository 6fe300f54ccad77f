#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/axis.hpp"
#include "scheduler/traffic/node_cost.hpp"

namespace isthmus::scheduler::test {

/// Degrees and bytes in the order tensor, context, expert, data, pipe.
template <typename T>
PerAxis<T> perAxis(T tensor, T context, T expert, T data, T pipe) {
    PerAxis<T> values;
    values[Axis::kTensor] = tensor;
    values[Axis::kContext] = context;
    values[Axis::kExpert] = expert;
    values[Axis::kData] = data;
    values[Axis::kPipe] = pipe;
    return values;
}

/// What leaves and enters one node, message by message.
struct Wire {
    std::int64_t egress = 0;
    std::int64_t ingress = 0;
};

/// Sends every message of one step, edge by edge: rings in the order of their nodes, both
/// directions of chains, every pair of an all-to-all (bytes must divide by the others).
std::vector<Wire> sendEverything(const Degrees& degrees, const AxisBytes& bytes,
                                 const std::vector<int>& nodeOfRank, int nodes);

NodeCost costByMessages(const Degrees& degrees, const AxisBytes& bytes,
                        const std::vector<int>& nodeOfRank, int nodes);

/// The best over every assignment of ranks to nodes of these sizes.
NodeCost bestOfAll(const Degrees& degrees, const AxisBytes& bytes, const std::vector<int>& sizes);

}  // namespace isthmus::scheduler::test
