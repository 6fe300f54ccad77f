#pragma once

#include "comm/algorithm/scene.hpp"
#include "comm/plan/builder.hpp"

namespace isthmus {

/// Collectives of ranks that are all on one node, through each other's memory: direct with
/// Mapping::kAll, staged with Mapping::kShared. Bytes are touched once where the machine allows:
/// every rank reduces one contiguous piece straight from all inputs.
void directAllReduce(PlanBuilder& plan, const Scene& scene);
void directReduce(PlanBuilder& plan, const Scene& scene);
void directReduceScatter(PlanBuilder& plan, const Scene& scene);
void directAllGather(PlanBuilder& plan, const Scene& scene);
void directAllToAll(PlanBuilder& plan, const Scene& scene);
void directBroadcast(PlanBuilder& plan, const Scene& scene);
void directGather(PlanBuilder& plan, const Scene& scene);
void directScatter(PlanBuilder& plan, const Scene& scene);
void directBarrier(PlanBuilder& plan, const Scene& scene);

}  // namespace isthmus
