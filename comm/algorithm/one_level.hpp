#pragma once

#include "comm/algorithm/scene.hpp"
#include "comm/plan/builder.hpp"

namespace isthmus {

/// Collectives by messages alone, over all ranks in node order, whatever links them.
void ringAllReduceOfAll(PlanBuilder& plan, const Scene& scene);
void exchangeAllReduceOfAll(PlanBuilder& plan, const Scene& scene);
void doublingAllReduceOfAll(PlanBuilder& plan, const Scene& scene);
void halvingAllReduceOfAll(PlanBuilder& plan, const Scene& scene);
void bidirectionalAllReduceOfAll(PlanBuilder& plan, const Scene& scene);
void doubleTreeAllReduceOfAll(PlanBuilder& plan, const Scene& scene);
void ringReduceScatterOfAll(PlanBuilder& plan, const Scene& scene);
void exchangeReduceScatterOfAll(PlanBuilder& plan, const Scene& scene);
void halvingReduceScatterOfAll(PlanBuilder& plan, const Scene& scene);
void bidirectionalReduceScatterOfAll(PlanBuilder& plan, const Scene& scene);
void ringAllGatherOfAll(PlanBuilder& plan, const Scene& scene);
void exchangeAllGatherOfAll(PlanBuilder& plan, const Scene& scene);
void bruckAllGatherOfAll(PlanBuilder& plan, const Scene& scene);
void bruck4AllGatherOfAll(PlanBuilder& plan, const Scene& scene);
void bruckAllToAllOfAll(PlanBuilder& plan, const Scene& scene);
void bruck4AllToAllOfAll(PlanBuilder& plan, const Scene& scene);
void bidirectionalAllGatherOfAll(PlanBuilder& plan, const Scene& scene);
void pairwiseAllToAllOfAll(PlanBuilder& plan, const Scene& scene);
void copiedPairwiseAllToAllOfAll(PlanBuilder& plan, const Scene& scene);
void butterflyAllReduceOfAll(PlanBuilder& plan, const Scene& scene);
void butterflyReduceScatterOfAll(PlanBuilder& plan, const Scene& scene);
void butterflyAllGatherOfAll(PlanBuilder& plan, const Scene& scene);
void butterflyAllToAllOfAll(PlanBuilder& plan, const Scene& scene);
void chainBroadcastOfAll(PlanBuilder& plan, const Scene& scene);
void binomialBroadcastOfAll(PlanBuilder& plan, const Scene& scene);
void doubleTreeBroadcastOfAll(PlanBuilder& plan, const Scene& scene);
void chainReduceOfAll(PlanBuilder& plan, const Scene& scene);
void binomialReduceOfAll(PlanBuilder& plan, const Scene& scene);
void doubleTreeReduceOfAll(PlanBuilder& plan, const Scene& scene);
void linearGatherOfAll(PlanBuilder& plan, const Scene& scene);
void linearScatterOfAll(PlanBuilder& plan, const Scene& scene);
void disseminationBarrierOfAll(PlanBuilder& plan, const Scene& scene);

}  // namespace isthmus
