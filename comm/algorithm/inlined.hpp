#pragma once

#include "comm/algorithm/scene.hpp"
#include "comm/plan/builder.hpp"

namespace isthmus {

/// Tiny calls of ranks on one node: copy to shared, meet once, read what is wanted. Nobody meets
/// again before leaving: the engine keeps the call's shared memory until all ranks have long moved
/// on (Plan::sharedOutlivesCall). Blocks must be of one size.
void inlineAllReduce(PlanBuilder& plan, const Scene& scene);
void inlineReduce(PlanBuilder& plan, const Scene& scene);
void inlineReduceScatter(PlanBuilder& plan, const Scene& scene);
void inlineAllGather(PlanBuilder& plan, const Scene& scene);
void inlineAllToAll(PlanBuilder& plan, const Scene& scene);
void inlineBroadcast(PlanBuilder& plan, const Scene& scene);
void inlineGather(PlanBuilder& plan, const Scene& scene);
void inlineScatter(PlanBuilder& plan, const Scene& scene);

}  // namespace isthmus
