#pragma once

#include "comm/algorithm/scene.hpp"
#include "comm/plan/builder.hpp"

namespace isthmus {

/// Composed collectives over several nodes of any sizes: a node part (NodeLevel, direct or staged)
/// and a rail part of messages between one rank of each node. Whichever the node part, the
/// messages are the same, so every node may choose alone.
///
/// Bytes that leave and enter a node meet the lower bounds: 2 (N - 1) / N of the operand for
/// all-reduce (ring, exchange), each block once into each node for all-gather, one sum per block
/// out of each node for reduce-scatter. Shares are dealt to all ranks of a node.

/// Each rank sums its shards over the node, then over the shard's rail, then gives them to the
/// node. Pipelined over segments by the engine.
/// Source: Cho et al., BlueConnect, MLSys 2019; shards for unequal nodes are ours (Shards).
void twoLevelRingAllReduce(PlanBuilder& plan, const Scene& scene);
void twoLevelExchangeAllReduce(PlanBuilder& plan, const Scene& scene);
void twoLevelDoublingAllReduce(PlanBuilder& plan, const Scene& scene);
void twoLevelHalvingAllReduce(PlanBuilder& plan, const Scene& scene);
void twoLevelButterflyAllReduce(PlanBuilder& plan, const Scene& scene);
void twoLevelBidirectionalAllReduce(PlanBuilder& plan, const Scene& scene);
void twoLevelDoubleTreeAllReduce(PlanBuilder& plan, const Scene& scene);

void twoLevelExchangeReduceScatter(PlanBuilder& plan, const Scene& scene);
void twoLevelRingReduceScatter(PlanBuilder& plan, const Scene& scene);
void twoLevelExchangeAllGather(PlanBuilder& plan, const Scene& scene);
void twoLevelRingAllGather(PlanBuilder& plan, const Scene& scene);

void twoLevelPairwiseAllToAll(PlanBuilder& plan, const Scene& scene);
/// The same messages through scratch: may run in place.
void twoLevelCopiedPairwiseAllToAll(PlanBuilder& plan, const Scene& scene);

void twoLevelChainBroadcast(PlanBuilder& plan, const Scene& scene);
void twoLevelBinomialBroadcast(PlanBuilder& plan, const Scene& scene);
void twoLevelDoubleTreeBroadcast(PlanBuilder& plan, const Scene& scene);
void twoLevelChainReduce(PlanBuilder& plan, const Scene& scene);
void twoLevelBinomialReduce(PlanBuilder& plan, const Scene& scene);
void twoLevelDoubleTreeReduce(PlanBuilder& plan, const Scene& scene);
void twoLevelLinearGather(PlanBuilder& plan, const Scene& scene);
void twoLevelLinearScatter(PlanBuilder& plan, const Scene& scene);
void twoLevelBarrier(PlanBuilder& plan, const Scene& scene);

/// Small payloads: what a node has comes to one rank of it, its leader (the root in rooted ones,
/// else the first), and leaders alone send. Shared scratch outlives the call, so nobody waits for
/// the last reader (Plan::sharedOutlivesCall): one segment.
void leadersAllReduce(PlanBuilder& plan, const Scene& scene);
void leadersAllGather(PlanBuilder& plan, const Scene& scene);
void leadersReduceScatter(PlanBuilder& plan, const Scene& scene);
void leadersAllToAll(PlanBuilder& plan, const Scene& scene);
void leadersBroadcast(PlanBuilder& plan, const Scene& scene);
void leadersReduce(PlanBuilder& plan, const Scene& scene);

/// The sum walks through the ranks in their order, one run of neighbours on one node after the
/// other: ((input 0 + input 1) + input 2) + ..., whatever the layout. From the last run it goes on
/// to whoever wants it. Bytes: a node's runs each let the operand in and out once.
void twoLevelOrderedAllReduce(PlanBuilder& plan, const Scene& scene);
void twoLevelOrderedReduce(PlanBuilder& plan, const Scene& scene);
void twoLevelOrderedReduceScatter(PlanBuilder& plan, const Scene& scene);

/// Every shard in one chunk, in two, in as many as there are nodes, or as nodes that halve.
Chunking wholeShards(const Layout& layout);
Chunking halfShards(const Layout& layout);
Chunking shardsByNodes(const Layout& layout);
Chunking shardsByHalvingNodes(const Layout& layout);
/// Every shard in pieces that are as wide as each node's share (Layout::shares).
Chunking shardsByShares(const Layout& layout);

}  // namespace isthmus
