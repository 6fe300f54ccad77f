#pragma once

#include "comm/algorithm/scene.hpp"
#include "comm/plan/builder.hpp"

namespace isthmus {

/// Composed collectives over nodes in racks (and racks in rows, to any depth: Layout::racks). The
/// node part is that of two levels; between nodes each level is crossed once by what its units must
/// give and get, so that the links between racks carry the least possible, and a node's card over
/// equal racks too.
/// Source: Cho et al., BlueConnect, MLSys 2019; units of unlike sizes (Levels, BlockWays): own.

/// Scattered sums from the innermost level out, an all-reduce between the outermost units, the
/// same way back.
void threeLevelExchangeAllReduce(PlanBuilder& plan, const Scene& scene);
void threeLevelRingAllReduce(PlanBuilder& plan, const Scene& scene);

/// One sum of each block leaves a unit that its home is not in; one copy of it enters.
void threeLevelReduceScatter(PlanBuilder& plan, const Scene& scene);
void threeLevelAllGather(PlanBuilder& plan, const Scene& scene);

/// What I have for all ranks of another rack goes in one message to the rank there that carries my
/// block, which passes it on in its rack: few messages between racks, the bytes of any all-to-all.
/// Blocks of one size.
void rackFirstAllToAll(PlanBuilder& plan, const Scene& scene);

Chunking piecesOfLevels(const Layout& layout);

}  // namespace isthmus
