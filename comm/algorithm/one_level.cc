#include "comm/algorithm/one_level.hpp"

#include <algorithm>

#include "comm/algorithm/bidirectional_ring.hpp"
#include "comm/algorithm/bruck.hpp"
#include "comm/algorithm/bruck_all_to_all.hpp"
#include "comm/algorithm/butterfly.hpp"
#include "comm/algorithm/chunks.hpp"
#include "comm/algorithm/dissemination.hpp"
#include "comm/algorithm/double_tree.hpp"
#include "comm/algorithm/doubling.hpp"
#include "comm/algorithm/exchange.hpp"
#include "comm/algorithm/halving.hpp"
#include "comm/algorithm/linear.hpp"
#include "comm/algorithm/ring.hpp"

namespace isthmus {
namespace {

void copyOwnBlock(PlanBuilder& plan) {
    plan.copy(plan.output()(block(plan, plan.me())), plan.input()(block(plan, 0)));
}

void bruckGather(PlanBuilder& plan, const Scene& scene, int radix) {
    const Group group = scene.everybody(plan.me());
    copyOwnBlock(plan);
    bruckAllGather(plan, group, blocksOf(plan, group), plan.output(), radix);
}

void bruckExchange(PlanBuilder& plan, const Scene& scene, int radix) {
    const Chunks own = block(plan, plan.me());
    bruckAllToAll(plan, scene.everybody(plan.me()), radix);
    plan.copy(plan.output()(own), plan.input()(own));
}

/// Digits of the place within the node first where nodes are equal: what then crosses is 1 / ranks
/// of a node of the payload.
std::vector<int> radicesFor(const Scene& scene) {
    const auto isLikeTheFirst = [&](const std::vector<Rank>& node) {
        return node.size() == scene.layout.nodes.front().size();
    };
    const auto& nodes = scene.layout.nodes;
    if (!std::all_of(nodes.begin(), nodes.end(), isLikeTheFirst)) return radicesOf(scene.ranks());
    std::vector<int> radices = radicesOf(scene.node.size());
    const std::vector<int> ofNodes = radicesOf(scene.nodes());
    radices.insert(radices.end(), ofNodes.begin(), ofNodes.end());
    return radices;
}

void allToAll(PlanBuilder& plan, const Scene& scene, Outgoing outgoing) {
    const Group group = scene.everybody(plan.me());
    const Chunks own = block(plan, plan.me());
    plan.setInPlaceSafe(outgoing == Outgoing::kThroughScratch);
    exchangePieces(plan, group, blocksOf(plan, group), plan.input(), plan.output(), outgoing);
    plan.copy(plan.output()(own), plan.input()(own));
}

/// Chunk c goes through the c-th tree.
void broadcast(PlanBuilder& plan, const Scene& scene, std::initializer_list<TreeShape> trees) {
    const bool isRoot = plan.me() == scene.root;
    const Group group = scene.everybodyFromRoot(plan.me());
    int chunk = 0;
    for (const TreeShape tree : trees) {
        const Slice from = isRoot ? plan.input()({chunk}) : Slice{};
        treeBroadcast(plan, group, tree, from, plan.output()({chunk++}));
    }
    const Chunks all = allBlocks(plan, 1);
    if (isRoot) plan.copy(plan.output()(all), plan.input()(all));
}

void reduceToRoot(PlanBuilder& plan, const Scene& scene, std::initializer_list<TreeShape> trees) {
    const bool isRoot = plan.me() == scene.root;
    const Group group = scene.everybodyFromRoot(plan.me());
    int chunk = 0;
    for (const TreeShape tree : trees) {
        const Slice result = isRoot ? plan.output()({chunk}) : Slice{};
        treeReduce(plan, group, tree, plan.input()({chunk++}), result, Completes::kYes);
    }
}

}  // namespace

void ringAllReduceOfAll(PlanBuilder& plan, const Scene& scene) {
    ringAllReduce(plan, scene.everybody(plan.me()), singles(scene.ranks()), plan.input(),
                  plan.output(), Completes::kYes);
}

void exchangeAllReduceOfAll(PlanBuilder& plan, const Scene& scene) {
    exchangeAllReduce(plan, scene.everybody(plan.me()), singles(scene.ranks()), plan.input(),
                      plan.output(), Completes::kYes);
}

void doublingAllReduceOfAll(PlanBuilder& plan, const Scene& scene) {
    doublingAllReduce(plan, scene.everybody(plan.me()), allBlocks(plan, 1), plan.input(),
                      plan.output(), Completes::kYes);
}

void halvingAllReduceOfAll(PlanBuilder& plan, const Scene& scene) {
    halvingAllReduce(plan, scene.everybody(plan.me()), singles(halvingWorkers(scene.ranks())),
                     plan.input(), plan.output(), Completes::kYes);
}

void bidirectionalAllReduceOfAll(PlanBuilder& plan, const Scene& scene) {
    bidirectionalAllReduce(plan, scene.everybody(plan.me()), singles(scene.ranks()), plan.input(),
                           plan.output(), Completes::kYes);
}

void doubleTreeAllReduceOfAll(PlanBuilder& plan, const Scene& scene) {
    doubleTreeAllReduce(plan, scene.everybody(plan.me()), singles(2), plan.input(), plan.output(),
                        Completes::kYes);
}

void ringReduceScatterOfAll(PlanBuilder& plan, const Scene& scene) {
    const Group group = scene.everybody(plan.me());
    ringReduceScatter(plan, group, blocksOf(plan, group), plan.input(), outputOfMyBlock(plan),
                      Completes::kYes);
}

void exchangeReduceScatterOfAll(PlanBuilder& plan, const Scene& scene) {
    const Group group = scene.everybody(plan.me());
    exchangeReduceScatter(plan, group, blocksOf(plan, group), plan.input(), outputOfMyBlock(plan),
                          Completes::kYes);
}

void halvingReduceScatterOfAll(PlanBuilder& plan, const Scene& scene) {
    const Group group = scene.everybody(plan.me());
    halvingReduceScatter(plan, group, blocksOf(plan, group), plan.input(), outputOfMyBlock(plan),
                         Completes::kYes);
}

void bidirectionalReduceScatterOfAll(PlanBuilder& plan, const Scene& scene) {
    const Group group = scene.everybody(plan.me());
    bidirectionalReduceScatter(plan, group, blocksOf(plan, group), plan.input(),
                               outputOfMyBlock(plan), Completes::kYes);
}

void ringAllGatherOfAll(PlanBuilder& plan, const Scene& scene) {
    const Group group = scene.everybody(plan.me());
    ringAllGather(plan, group, blocksOf(plan, group), plan.input()(block(plan, 0)), plan.output());
    copyOwnBlock(plan);
}

void exchangeAllGatherOfAll(PlanBuilder& plan, const Scene& scene) {
    const Group group = scene.everybody(plan.me());
    exchangeAllGather(plan, group, blocksOf(plan, group), plan.input()(block(plan, 0)),
                      plan.output());
    copyOwnBlock(plan);
}

void bidirectionalAllGatherOfAll(PlanBuilder& plan, const Scene& scene) {
    const Group group = scene.everybody(plan.me());
    bidirectionalAllGather(plan, group, blocksOf(plan, group), plan.input()(block(plan, 0)),
                           plan.output());
    copyOwnBlock(plan);
}

void bruckAllGatherOfAll(PlanBuilder& plan, const Scene& scene) {
    bruckGather(plan, scene, 2);
}

void bruck4AllGatherOfAll(PlanBuilder& plan, const Scene& scene) {
    bruckGather(plan, scene, 4);
}

void bruckAllToAllOfAll(PlanBuilder& plan, const Scene& scene) {
    bruckExchange(plan, scene, 2);
}

void bruck4AllToAllOfAll(PlanBuilder& plan, const Scene& scene) {
    bruckExchange(plan, scene, 4);
}

void butterflyAllReduceOfAll(PlanBuilder& plan, const Scene& scene) {
    butterflyAllReduce(plan, scene.everybody(plan.me()), radicesFor(scene), singles(scene.ranks()),
                       plan.input(), plan.output(), Completes::kYes);
}

void butterflyReduceScatterOfAll(PlanBuilder& plan, const Scene& scene) {
    const Group group = scene.everybody(plan.me());
    butterflyReduceScatter(plan, group, radicesFor(scene), blocksOf(plan, group), plan.input(),
                           outputOfMyBlock(plan), Completes::kYes);
}

void butterflyAllGatherOfAll(PlanBuilder& plan, const Scene& scene) {
    const Group group = scene.everybody(plan.me());
    copyOwnBlock(plan);
    butterflyAllGather(plan, group, radicesFor(scene), blocksOf(plan, group), plan.output());
}

void butterflyAllToAllOfAll(PlanBuilder& plan, const Scene& scene) {
    const Chunks own = block(plan, plan.me());
    butterflyAllToAll(plan, scene.everybody(plan.me()), radicesFor(scene));
    plan.copy(plan.output()(own), plan.input()(own));
}

void pairwiseAllToAllOfAll(PlanBuilder& plan, const Scene& scene) {
    allToAll(plan, scene, Outgoing::kStraight);
}

void copiedPairwiseAllToAllOfAll(PlanBuilder& plan, const Scene& scene) {
    allToAll(plan, scene, Outgoing::kThroughScratch);
}

void chainBroadcastOfAll(PlanBuilder& plan, const Scene& scene) {
    broadcast(plan, scene, {chain});
}

void binomialBroadcastOfAll(PlanBuilder& plan, const Scene& scene) {
    broadcast(plan, scene, {binomial});
}

void doubleTreeBroadcastOfAll(PlanBuilder& plan, const Scene& scene) {
    broadcast(plan, scene, {firstTreeFromRoot, secondTreeFromRoot});
}

void chainReduceOfAll(PlanBuilder& plan, const Scene& scene) {
    reduceToRoot(plan, scene, {chain});
}

void binomialReduceOfAll(PlanBuilder& plan, const Scene& scene) {
    reduceToRoot(plan, scene, {binomial});
}

void doubleTreeReduceOfAll(PlanBuilder& plan, const Scene& scene) {
    reduceToRoot(plan, scene, {firstTreeFromRoot, secondTreeFromRoot});
}

void linearGatherOfAll(PlanBuilder& plan, const Scene& scene) {
    const Group group = scene.everybodyFromRoot(plan.me());
    linearGather(plan, group, blocksOf(plan, group), plan.input()(block(plan, 0)), plan.output());
    if (plan.me() == scene.root) copyOwnBlock(plan);
}

void linearScatterOfAll(PlanBuilder& plan, const Scene& scene) {
    const Group group = scene.everybodyFromRoot(plan.me());
    const Slice own = plan.output()(block(plan, 0));
    linearScatter(plan, group, blocksOf(plan, group), plan.input(), own);
    if (plan.me() == scene.root) plan.copy(own, plan.input()(block(plan, plan.me())));
}

void disseminationBarrierOfAll(PlanBuilder& plan, const Scene& scene) {
    disseminate(plan, scene.everybody(plan.me()));
}

}  // namespace isthmus
