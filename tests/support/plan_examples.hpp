#pragma once

#include <functional>
#include <vector>

#include "comm/plan/builder.hpp"

namespace isthmus::test {

/// Small plans written here, so that builder, prover and interpreter are tested without the
/// catalogue.
using Author = std::function<void(PlanBuilder&)>;

struct PlansWanted {
    Collective collective = Collective::kAllReduce;
    std::vector<int> nodeOfRank;
    int chunks = 1;
    Mapping mapping = Mapping::kNone;
    Rank root = 0;
};

/// The plans of all ranks; fails the running test when one cannot be built.
std::vector<Plan> plansOf(const PlansWanted& wanted, const Author& author);

std::vector<Rank> everybody(int ranks);
std::vector<int> oneNode(int ranks);

// chunks = ranks
void ringAllReduce(PlanBuilder& plan);
void exchangeAllReduce(PlanBuilder& plan);
void directAllReduce(PlanBuilder& plan);
void stagedAllReduce(PlanBuilder& plan);
/// As staged, with one meeting only and sharedOutlivesCall.
void inlineAllReduce(PlanBuilder& plan);
// chunks = 1
void ringAllGather(PlanBuilder& plan);
void directAllToAll(PlanBuilder& plan);  ///< not for in place
void chainBroadcast(PlanBuilder& plan);
void disseminationBarrier(PlanBuilder& plan);

}  // namespace isthmus::test
