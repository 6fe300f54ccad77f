#pragma once

#include <span>
#include <vector>

#include "comm/algorithm/group.hpp"
#include "comm/plan/builder.hpp"

namespace isthmus {

/// Chunk numbers first, first + 1, ..., first + chunks - 1.
Chunks run(int first, int chunks);

/// All chunks of blocks 0 to blocks - 1, or of one block.
Chunks allBlocks(const PlanBuilder& plan, int blocks);
Chunks block(const PlanBuilder& plan, int block);
/// All chunks of the blocks of these ranks, one after the other.
Chunks chunksOf(const PlanBuilder& plan, std::span<const Rank> blocks);

/// Piece p is the block of group[p].
Pieces blocksOf(const PlanBuilder& plan, const Group& group);

/// Piece p is chunk p.
Pieces singles(int pieces);

/// My only output block, whichever block the chunk numbers speak of (reduce-scatter, scatter).
Place outputOfMyBlock(const PlanBuilder& plan);

/// Where chunk chunks[i] lies at slice[i].
Place lyingAt(Chunks chunks, Slice slice);

/// Fresh private scratch for what the slice holds.
Slice scratchLike(PlanBuilder& plan, const Slice& slice);

/// target = sources added left to right; a plain copy when there is one.
void combine(PlanBuilder& plan, const Slice& target, const std::vector<Slice>& sources,
             Completes completes);

Slice joined(const std::vector<Slice>& slices);

}  // namespace isthmus
