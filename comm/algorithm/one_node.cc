#include "comm/algorithm/one_node.hpp"

#include "comm/algorithm/chunks.hpp"
#include "comm/algorithm/node_level.hpp"

namespace isthmus {
namespace {

Chunks without(const Chunks& all, const Chunks& left) {
    Chunks rest;
    for (const int chunk : all) {
        if (chunk < left.front() || chunk > left.back()) rest.push_back(chunk);
    }
    return rest;
}

/// Shared scratch for contributions only: none where these can be read.
std::vector<ChunkName> shownIn(const PlanBuilder& plan, std::vector<ChunkName> slots) {
    return plan.mapping() == Mapping::kRead ? std::vector<ChunkName>{} : std::move(slots);
}

}  // namespace

void directAllReduce(PlanBuilder& plan, const Scene& scene) {
    NodeLevel node(plan, scene.node, blockNames(plan, 1));
    const Pieces pieces = singles(scene.ranks());
    const Chunks& mine = pieces[static_cast<std::size_t>(scene.node.me())];
    node.offerInput(without(allBlocks(plan, 1), mine));
    node.waitForAll();
    node.sumInputs(node.held(mine), mine, Completes::kYes);
    node.spread(pieces);
}

void directReduce(PlanBuilder& plan, const Scene& scene) {
    NodeLevel node(plan, scene.node, blockNames(plan, 1));
    const Pieces pieces = singles(scene.ranks());
    const Chunks& mine = pieces[static_cast<std::size_t>(scene.node.me())];
    node.offerInput(without(allBlocks(plan, 1), mine));
    node.waitForAll();
    const Rank holder = node.isStaged() ? plan.me() : scene.root;
    node.sumInputs(node.heldBy(holder, mine), mine, Completes::kYes);
    node.meet();
    if (!node.isStaged()) return;
    if (plan.me() == scene.root) node.pull(pieces);
    node.meet();
}

void directReduceScatter(PlanBuilder& plan, const Scene& scene) {
    NodeLevel node(plan, scene.node, shownIn(plan, blockNames(plan, scene.ranks())));
    const Chunks mine = block(plan, plan.me());
    node.offerInput(without(allBlocks(plan, scene.ranks()), mine));
    node.waitForAll();
    node.sumInputs(outputOfMyBlock(plan)(mine), mine, Completes::kYes);
    node.meet();
}

void directAllGather(PlanBuilder& plan, const Scene& scene) {
    NodeLevel node(plan, scene.node, shownIn(plan, blockNames(plan, scene.ranks())));
    const Chunks own = block(plan, 0);
    const bool isShown = node.copiesInputs();
    if (isShown) plan.copy(node.held(block(plan, plan.me())), plan.input()(own));
    node.meet();
    for (int hops = 0; hops < scene.node.size(); ++hops) {
        const Rank rank = scene.node[scene.node.me() + hops];
        const Chunks target = block(plan, rank);
        plan.copy(plan.output()(target),
                  isShown && hops > 0 ? node.heldBy(rank, target) : plan.at(rank).input(own));
    }
    node.meet();
}

void directAllToAll(PlanBuilder& plan, const Scene& scene) {
    NodeLevel node(plan, scene.node, shownIn(plan, allToAllNames(plan, scene.node)));
    plan.setInPlaceSafe(node.copiesInputs());
    const Chunks mine = block(plan, plan.me());
    node.offerInput(without(allBlocks(plan, scene.ranks()), mine));
    node.waitForAll();
    for (int hops = 0; hops < scene.node.size(); ++hops) {
        const Rank rank = scene.node[scene.node.me() + hops];
        plan.copy(plan.output()(block(plan, rank)), node.inputOf(rank, mine));
    }
    node.meet();
}

void directBroadcast(PlanBuilder& plan, const Scene& scene) {
    NodeLevel node(plan, scene.node, shownIn(plan, blockNames(plan, 1)));
    const Chunks all = allBlocks(plan, 1);
    if (plan.me() == scene.root) {
        node.offerInput(all);
        plan.copy(plan.output()(all), plan.input()(all));
        node.waitForAll();
    } else {
        plan.wait({&scene.root, 1});
        plan.copy(plan.output()(all), node.inputOf(scene.root, all));
        plan.signal({&scene.root, 1});
    }
}

void directGather(PlanBuilder& plan, const Scene& scene) {
    NodeLevel node(plan, scene.node, shownIn(plan, blockNames(plan, scene.ranks())));
    const Chunks mine = block(plan, plan.me());
    const Slice own = plan.input()(block(plan, 0));
    if (plan.me() == scene.root) {
        if (!node.isStaged()) node.signalAll();
        plan.copy(plan.output()(mine), own);
        node.waitForAll();
        if (!node.isStaged()) return;
        for (int hops = 1; hops < scene.node.size(); ++hops) {
            const Rank rank = scene.node[scene.node.me() + hops];
            plan.copy(plan.output()(block(plan, rank)), node.canRead()
                                                            ? plan.at(rank).input(block(plan, 0))
                                                            : node.heldBy(rank, block(plan, rank)));
        }
        node.signalAll();
    } else if (node.isStaged()) {
        if (node.copiesInputs()) plan.copy(node.held(mine), own);
        plan.signal({&scene.root, 1});
        plan.wait({&scene.root, 1});
    } else {
        plan.wait({&scene.root, 1});
        plan.copy(node.heldBy(scene.root, mine), own);
        plan.signal({&scene.root, 1});
    }
}

void directScatter(PlanBuilder& plan, const Scene& scene) {
    NodeLevel node(plan, scene.node, shownIn(plan, blockNames(plan, scene.ranks())));
    const Chunks mine = block(plan, plan.me());
    const Slice own = plan.output()(block(plan, 0));
    if (plan.me() == scene.root) {
        node.offerInput(without(allBlocks(plan, scene.ranks()), mine));
        plan.copy(own, plan.input()(mine));
        node.waitForAll();
    } else {
        plan.wait({&scene.root, 1});
        plan.copy(own, node.inputOf(scene.root, mine));
        plan.signal({&scene.root, 1});
    }
}

void directBarrier(PlanBuilder& plan, const Scene& scene) {
    plan.meet(scene.node.ranks());
}

}  // namespace isthmus
