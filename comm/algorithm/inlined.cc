#include "comm/algorithm/inlined.hpp"

#include "comm/algorithm/chunks.hpp"
#include "comm/algorithm/node_level.hpp"

namespace isthmus {
namespace {

/// Grabs slots, fills mine with my input (when I have any to show) and meets.
void show(PlanBuilder& plan, const Scene& scene, const std::vector<ChunkName>& names,
          const Chunks& slots, const Slice& input) {
    plan.setSharedOutlivesCall(true);
    plan.grabShared(names);
    plan.copy(plan.shared()(slots), input);
    plan.meet(scene.node.ranks());
}

/// These chunks of everybody, in the order of ranks; mine from my input.
std::vector<Slice> shown(PlanBuilder& plan, const Scene& scene, const Chunks& chunks) {
    std::vector<Slice> slices;
    for (const Rank rank : scene.node.ranks()) {
        slices.push_back(rank == plan.me() ? plan.input()(chunks) : plan.at(rank).shared(chunks));
    }
    return slices;
}

/// Everybody's own block, in the order of ranks; mine from my input.
std::vector<Slice> shownBlocks(PlanBuilder& plan, const Scene& scene) {
    std::vector<Slice> slices;
    for (const Rank rank : scene.node.ranks()) {
        slices.push_back(rank == plan.me() ? plan.input()(block(plan, 0))
                                           : plan.at(rank).shared(block(plan, rank)));
    }
    return slices;
}

}  // namespace

void inlineAllReduce(PlanBuilder& plan, const Scene& scene) {
    const Chunks all = allBlocks(plan, 1);
    show(plan, scene, blockNames(plan, 1), all, plan.input()(all));
    combine(plan, plan.output()(all), shown(plan, scene, all), Completes::kYes);
}

void inlineReduce(PlanBuilder& plan, const Scene& scene) {
    const bool isRoot = plan.me() == scene.root;
    const Chunks all = allBlocks(plan, 1);
    show(plan, scene, blockNames(plan, 1), isRoot ? Chunks{} : all,
         plan.input()(isRoot ? Chunks{} : all));
    if (isRoot) combine(plan, plan.output()(all), shown(plan, scene, all), Completes::kYes);
}

void inlineReduceScatter(PlanBuilder& plan, const Scene& scene) {
    const Chunks all = allBlocks(plan, scene.ranks());
    const Chunks mine = block(plan, plan.me());
    show(plan, scene, blockNames(plan, scene.ranks()), all, plan.input()(all));
    combine(plan, outputOfMyBlock(plan)(mine), shown(plan, scene, mine), Completes::kYes);
}

void inlineAllGather(PlanBuilder& plan, const Scene& scene) {
    show(plan, scene, blockNames(plan, scene.ranks()), block(plan, plan.me()),
         plan.input()(block(plan, 0)));
    plan.copy(plan.output()(allBlocks(plan, scene.ranks())), joined(shownBlocks(plan, scene)));
}

void inlineAllToAll(PlanBuilder& plan, const Scene& scene) {
    const Chunks all = allBlocks(plan, scene.ranks());
    const Chunks mine = block(plan, plan.me());
    show(plan, scene, allToAllNames(plan, scene.node), all, plan.input()(all));
    std::vector<Slice> sources;
    for (const Rank rank : scene.node.ranks()) sources.push_back(plan.at(rank).shared(mine));
    plan.copy(plan.output()(all), joined(sources));
}

void inlineBroadcast(PlanBuilder& plan, const Scene& scene) {
    const bool isRoot = plan.me() == scene.root;
    const Chunks all = allBlocks(plan, 1);
    show(plan, scene, blockNames(plan, 1), isRoot ? all : Chunks{},
         isRoot ? plan.input()(all) : Slice{});
    plan.copy(plan.output()(all), isRoot ? plan.input()(all) : plan.at(scene.root).shared(all));
}

void inlineGather(PlanBuilder& plan, const Scene& scene) {
    const bool isRoot = plan.me() == scene.root;
    show(plan, scene, blockNames(plan, scene.ranks()), isRoot ? Chunks{} : block(plan, plan.me()),
         isRoot ? Slice{} : plan.input()(block(plan, 0)));
    if (!isRoot) return;
    plan.copy(plan.output()(allBlocks(plan, scene.ranks())), joined(shownBlocks(plan, scene)));
}

void inlineScatter(PlanBuilder& plan, const Scene& scene) {
    const bool isRoot = plan.me() == scene.root;
    const Chunks slots = isRoot ? allBlocks(plan, scene.ranks()) : Chunks{};
    const Chunks mine = block(plan, plan.me());
    show(plan, scene, blockNames(plan, scene.ranks()), slots, plan.input()(slots));
    plan.copy(plan.output()(block(plan, 0)),
              isRoot ? plan.input()(mine) : plan.at(scene.root).shared(mine));
}

}  // namespace isthmus
