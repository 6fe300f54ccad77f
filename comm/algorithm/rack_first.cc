#include <algorithm>

#include "comm/algorithm/chunks.hpp"
#include "comm/algorithm/sharing.hpp"
#include "comm/algorithm/three_level.hpp"

namespace isthmus {
namespace {

/// Scratch for the blocks from `source` to each of `destinations`.
std::vector<Slice> roomFor(PlanBuilder& plan, Rank source, std::span<const Rank> destinations) {
    std::vector<Slice> room;
    for (const Rank destination : destinations) {
        std::vector<ChunkName> names;
        for (int chunk = 0; chunk < plan.chunksPerBlock(); ++chunk) {
            names.push_back({source * plan.ranks() + destination, chunk});
        }
        room.push_back(plan.grabScratch(names));
    }
    return room;
}

/// Ranks of other racks whose blocks for a rack come to `carrier`: those of the rack before its own
/// first, as they are the first that send.
std::vector<Rank> comingTo(const BlockRails& rails, Rank carrier) {
    std::vector<Rank> sources = rails.carriedBy(carrier);
    std::erase_if(sources,
                  [&](Rank source) { return rails.homeOf(source) == rails.homeOf(carrier); });
    const auto hops = [&](Rank source) {
        return rails.hops(rails.homeOf(source), rails.homeOf(carrier));
    };
    std::stable_sort(sources.begin(), sources.end(),
                     [&](Rank one, Rank other) { return hops(one) < hops(other); });
    return sources;
}

}  // namespace

void rackFirstAllToAll(PlanBuilder& plan, const Scene& scene) {
    const Layout racks = scene.layout.byRack();
    const Scene view(racks, plan.me(), 0);
    const BlockRails rails(racks, view.nodeOf);
    const Group& rack = view.node;
    const Rank me = plan.me();
    // forMate[position]: what goes to a mate, mine first; copied, so that it may run in place. What
    // others have for me is among them.
    std::vector<std::vector<Slice>> forMate(rack.ranks().size());
    for (int hops = 1; hops < rack.size(); ++hops) {
        const int position = rack.wrap(rack.me() + hops);
        const Slice mine = plan.input()(block(plan, rack[position]));
        const Slice kept = scratchLike(plan, mine);
        plan.copy(kept, mine);
        forMate[static_cast<std::size_t>(position)].push_back(kept);
    }
    for (int hops = 1; hops < view.nodes(); ++hops) {
        const int to = (view.myNode + hops) % view.nodes();
        plan.send(rails.helper(to, me),
                  plan.input()(chunksOf(plan, racks.nodes[static_cast<std::size_t>(to)])));
    }
    for (const Rank source : comingTo(rails, me)) {
        const std::vector<Slice> room = roomFor(plan, source, rack.ranks());
        plan.recv(source, joined(room));
        for (std::size_t position = 0; position < room.size(); ++position) {
            forMate[position].push_back(room[position]);
        }
    }
    for (int hops = 1; hops < rack.size(); ++hops) {
        const int to = rack.wrap(rack.me() + hops);
        plan.send(rack[to], joined(forMate[static_cast<std::size_t>(to)]));
        const Rank from = rack[rack.me() - hops];
        Chunks coming = block(plan, from);
        const Chunks passed = chunksOf(plan, comingTo(rails, from));
        coming.insert(coming.end(), passed.begin(), passed.end());
        plan.recv(from, plan.output()(coming));
    }
    Chunks mine = block(plan, me);
    std::vector<Slice> from = {plan.input()(mine)};
    const Chunks carried = chunksOf(plan, comingTo(rails, me));
    mine.insert(mine.end(), carried.begin(), carried.end());
    const auto& forMe = forMate[static_cast<std::size_t>(rack.me())];
    from.insert(from.end(), forMe.begin(), forMe.end());
    plan.copy(plan.output()(mine), joined(from));
}

}  // namespace isthmus
