#pragma once

#include "comm/algorithm/scene.hpp"
#include "comm/plan/builder.hpp"

namespace isthmus {

/// All-to-all whose blocks take two hops, so that a node sends another one message for each rank
/// instead of one for each pair of ranks. The bytes between nodes are those of any all-to-all.
/// Outgoing blocks pass through shared memory: may run in place. Blocks must be of one size.
/// Source: PXN, NVIDIA NCCL 2.12 release notes, 2022; unequal nodes (BlockRails): own.

/// Within the node first: what all of a node's ranks have for one rank elsewhere leaves through the
/// rank that carries that one's block, in one message, straight to its destination.
void nodeFirstAllToAll(PlanBuilder& plan, const Scene& scene);

/// Along the rail first: what I have for all ranks of another node goes in one message to the rank
/// there that carries my block; its mates read their blocks from it.
void railFirstAllToAll(PlanBuilder& plan, const Scene& scene);

}  // namespace isthmus
