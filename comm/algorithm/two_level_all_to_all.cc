#include "comm/algorithm/chunks.hpp"
#include "comm/algorithm/exchange.hpp"
#include "comm/algorithm/node_level.hpp"
#include "comm/algorithm/two_level.hpp"

namespace isthmus {
namespace {

/// Messages to other nodes go straight from and to user memory: nothing can be saved there.
void exchangeWithOtherNodes(PlanBuilder& plan, const Scene& scene, Outgoing outgoing) {
    const Group everybody = scene.everybody(plan.me());
    Pieces pieces;
    for (const Rank rank : everybody.ranks()) {
        pieces.push_back(scene.isMate(rank) ? Chunks{} : block(plan, rank));
    }
    exchangePieces(plan, everybody, pieces, plan.input(), plan.output(), outgoing);
}

void allToAll(PlanBuilder& plan, const Scene& scene, Outgoing outgoing) {
    const Group& node = scene.node;
    const bool isCopied = outgoing == Outgoing::kThroughScratch;
    const bool isStaged = (isCopied || plan.mapping() == Mapping::kShared) && node.size() > 1;
    plan.setInPlaceSafe(isCopied);
    if (isStaged) {
        plan.grabShared(allToAllNames(plan, node));
        for (int hops = 1; hops < node.size(); ++hops) {
            const int position = node.wrap(node.me() + hops);
            plan.copy(plan.shared()(block(plan, position)),
                      plan.input()(block(plan, node[position])));
        }
    }
    plan.signal(node.ranks());
    exchangeWithOtherNodes(plan, scene, outgoing);
    plan.wait(node.ranks());
    for (int hops = 0; hops < node.size(); ++hops) {
        const Rank rank = node[node.me() + hops];
        const At memory = plan.at(rank);
        const bool isShared = isStaged && hops > 0;
        plan.copy(plan.output()(block(plan, rank)), isShared
                                                        ? memory.shared(block(plan, node.me()))
                                                        : memory.input(block(plan, plan.me())));
    }
    plan.meet(node.ranks());
}

}  // namespace

void twoLevelPairwiseAllToAll(PlanBuilder& plan, const Scene& scene) {
    allToAll(plan, scene, Outgoing::kStraight);
}

void twoLevelCopiedPairwiseAllToAll(PlanBuilder& plan, const Scene& scene) {
    allToAll(plan, scene, Outgoing::kThroughScratch);
}

}  // namespace isthmus
