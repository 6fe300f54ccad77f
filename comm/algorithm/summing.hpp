#pragma once

#include "comm/algorithm/scene.hpp"
#include "comm/plan/builder.hpp"

namespace isthmus {

/// All-reduce over ranks of which some hold no data and only add (Layout::summing): they give
/// cards and processors. Each owner adds up its piece of what the others contribute and gives the
/// sum back to those. A contributor of n that owns w sends and receives 1 + (n - 2) w of the
/// payload, an owner that only adds n w: with n of the latter every card carries the payload once
/// each way, where 2 (n - 1) / n is the least without them.
/// Source: Jiang et al., BytePS, OSDI 2020 (summation service); several ranks of a node: own.

/// By messages alone, whatever links the ranks; every sum in the order of ranks.
void summingAllReduce(PlanBuilder& plan, const Scene& scene);

/// A node's ranks with data are added up in its shared memory first; its ranks that only add carry
/// shares of it like the others. Nodes without data own what Layout::shares says of each shard.
void twoLevelSummingAllReduce(PlanBuilder& plan, const Scene& scene);

/// Pieces as wide as equal cards have time for (equalCards(), water_fill.hpp): of the payload by
/// rank, and of each shard by node, where Layout::shares does not say otherwise.
Chunking piecesOfSumming(const Layout& layout);
Chunking shardsOfSumming(const Layout& layout);

/// By node: whether any of its ranks holds data.
std::vector<bool> nodesWithData(const Layout& layout);

}  // namespace isthmus
