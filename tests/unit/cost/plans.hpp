#pragma once

#include <functional>
#include <vector>

#include "comm/algorithm/catalogue.hpp"
#include "comm/plan/builder.hpp"
#include "comm/plan/chunking.hpp"

namespace isthmus {

/// Every rank's plan of what `write` says; cut into `pieces` chunks per block.
inline std::vector<Plan> plansOf(Collective collective, const std::vector<int>& nodeOfRank,
                                 int pieces, Mapping mapping,
                                 const std::function<void(PlanBuilder&)>& write) {
    std::vector<Plan> plans;
    const int ranks = static_cast<int>(nodeOfRank.size());
    for (Rank me = 0; me < ranks; ++me) {
        PlanBuilder builder(collective, me, ranks, 0, evenChunking(pieces), nodeOfRank, mapping);
        write(builder);
        Result<Plan> plan = builder.finish();
        if (!plan.ok()) return {};
        plans.push_back(*plan);
    }
    return plans;
}

/// Reduce-scatter and all-gather around a circle of all ranks, piece by piece.
inline void writeRing(PlanBuilder& plan) {
    const int ranks = plan.ranks();
    const Rank me = plan.me();
    const auto piece = [&](int hops) { return Chunks{((me - hops) % ranks + ranks) % ranks}; };
    const Rank next = (me + 1) % ranks;
    const Rank previous = (me + ranks - 1) % ranks;
    for (int round = 0; round < ranks - 1; ++round) {
        const Slice landing = plan.grabScratch(plan.like(plan.input()(piece(round + 1))));
        plan.send(next, round == 0 ? plan.input()(piece(0)) : plan.output()(piece(round)));
        plan.recv(previous, landing);
        plan.reduce(plan.output()(piece(round + 1)), {landing, plan.input()(piece(round + 1))},
                    round == ranks - 2 ? Completes::kYes : Completes::kNo);
    }
    for (int round = 0; round < ranks - 1; ++round) {
        plan.send(next, plan.output()(piece(round + ranks - 1)));
        plan.recv(previous, plan.output()(piece(round + ranks)));
    }
}

}  // namespace isthmus
