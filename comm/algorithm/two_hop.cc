#include "comm/algorithm/two_hop.hpp"

#include <algorithm>

#include "comm/algorithm/chunks.hpp"
#include "comm/algorithm/node_level.hpp"
#include "comm/algorithm/sharing.hpp"

namespace isthmus {
namespace {

const std::vector<Rank>& ranksOfNode(const Scene& scene, int node) {
    return scene.layout.nodes[static_cast<std::size_t>(node % scene.nodes())];
}

/// Ranks of other nodes whose blocks `rank` carries.
std::vector<Rank> outsidersOf(const BlockRails& rails, const Scene& scene, Rank rank) {
    std::vector<Rank> outsiders = rails.carriedBy(rank);
    std::erase_if(outsiders, [&](Rank other) { return scene.isMate(other); });
    return outsiders;
}

/// The shared slots of a rank in the rail-first order: a block for each mate, then one for each
/// mate from each outsider whose message comes to that rank.
class RailSlots {
public:
    RailSlots(PlanBuilder& plan, const Scene& scene, const BlockRails& rails)
        : plan_(plan), mates_(scene.node.size()) {
        std::size_t most = 0;
        for (const Rank mate : scene.node.ranks()) {
            most = std::max(most, outsidersOf(rails, scene, mate).size());
        }
        std::vector<ChunkName> names = allToAllNames(plan, scene.node);
        for (const Rank from : outsidersOf(rails, scene, plan.me())) {
            for (const Rank to : scene.node.ranks()) name(names, from, to);
        }
        // Some mates carry one more: all have the same slots.
        const std::size_t slots =
            (1 + most) * static_cast<std::size_t>(mates_ * plan.chunksPerBlock());
        while (names.size() < slots) name(names, plan.me(), plan.me());
        plan.grabShared(names);
    }

    Chunks forMate(int position) const { return block(plan_, position); }
    Chunks fromOutsider(int index, int position) const {
        return block(plan_, (1 + index) * mates_ + position);
    }
    Chunks allFromOutsider(int index) const {
        const int chunks = mates_ * plan_.chunksPerBlock();
        return run((1 + index) * chunks, chunks);
    }

private:
    void name(std::vector<ChunkName>& names, Rank from, Rank to) const {
        for (int chunk = 0; chunk < plan_.chunksPerBlock(); ++chunk) {
            names.push_back({from * plan_.ranks() + to, chunk});
        }
    }

    PlanBuilder& plan_;
    int mates_;
};

}  // namespace

void nodeFirstAllToAll(PlanBuilder& plan, const Scene& scene) {
    const BlockRails rails(scene.layout, scene.nodeOf);
    const Group& node = scene.node;
    const Rank me = plan.me();
    std::vector<Rank> all(static_cast<std::size_t>(scene.ranks()));
    for (Rank rank = 0; rank < scene.ranks(); ++rank) all[static_cast<std::size_t>(rank)] = rank;
    plan.grabShared(allToAllNames(plan, Group(all, me)));
    std::erase(all, me);
    const Chunks leaving = chunksOf(plan, all);
    plan.copy(plan.shared()(leaving), plan.input()(leaving));
    plan.meet(node.ranks());
    for (int hops = 1; hops < scene.nodes(); ++hops) {
        for (const Rank to : ranksOfNode(scene, scene.myNode + hops)) {
            if (rails.helper(scene.myNode, to) != me) continue;
            std::vector<Slice> blocks;
            for (const Rank mate : node.ranks()) {
                blocks.push_back(plan.at(mate).shared(block(plan, to)));
            }
            plan.send(to, joined(blocks));
        }
        const int from = scene.myNode - hops + scene.nodes();
        plan.recv(rails.helper(from, me), plan.output()(chunksOf(plan, ranksOfNode(scene, from))));
    }
    plan.copy(plan.output()(block(plan, me)), plan.input()(block(plan, me)));
    for (int hops = 1; hops < node.size(); ++hops) {
        const Rank mate = node[node.me() + hops];
        plan.copy(plan.output()(block(plan, mate)), plan.at(mate).shared(block(plan, me)));
    }
    plan.meet(node.ranks());
}

void railFirstAllToAll(PlanBuilder& plan, const Scene& scene) {
    const BlockRails rails(scene.layout, scene.nodeOf);
    const Group& node = scene.node;
    const Rank me = plan.me();
    const RailSlots slots(plan, scene, rails);
    for (int hops = 1; hops < node.size(); ++hops) {
        const int position = node.wrap(node.me() + hops);
        plan.copy(plan.shared()(slots.forMate(position)),
                  plan.input()(block(plan, node[position])));
    }
    for (int hops = 1; hops < scene.nodes(); ++hops) {
        const int to = scene.myNode + hops;
        plan.send(rails.helper(to % scene.nodes(), me),
                  plan.input()(chunksOf(plan, ranksOfNode(scene, to))));
    }
    // The node before mine first, as it is the first that sends to me.
    const std::vector<Rank> outsiders = outsidersOf(rails, scene, me);
    for (int hops = 1; hops < scene.nodes(); ++hops) {
        for (const Rank from : ranksOfNode(scene, scene.myNode - hops + scene.nodes())) {
            const auto at = std::lower_bound(outsiders.begin(), outsiders.end(), from);
            if (at == outsiders.end() || *at != from) continue;
            const auto index = static_cast<int>(at - outsiders.begin());
            plan.recv(from, plan.shared()(slots.allFromOutsider(index)));
        }
    }
    plan.meet(node.ranks());
    plan.copy(plan.output()(block(plan, me)), plan.input()(block(plan, me)));
    for (int hops = 0; hops < node.size(); ++hops) {
        const Rank mate = node[node.me() + hops];
        Slice from = hops > 0 ? plan.at(mate).shared(slots.forMate(node.me())) : Slice{};
        Slice to = hops > 0 ? plan.output()(block(plan, mate)) : Slice{};
        int outsider = 0;
        for (const Rank source : outsidersOf(rails, scene, mate)) {
            const Slice theirs = plan.at(mate).shared(slots.fromOutsider(outsider++, node.me()));
            const Slice mine = plan.output()(block(plan, source));
            from.insert(from.end(), theirs.begin(), theirs.end());
            to.insert(to.end(), mine.begin(), mine.end());
        }
        plan.copy(to, from);
    }
    plan.meet(node.ranks());
}

}  // namespace isthmus
