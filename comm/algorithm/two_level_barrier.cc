#include "comm/algorithm/dissemination.hpp"
#include "comm/algorithm/two_level.hpp"

namespace isthmus {

// The node comes to its first rank, the first ranks meet, the node is let go: ceil(log2 N) messages
// leave each node.
void twoLevelBarrier(PlanBuilder& plan, const Scene& scene) {
    const Rank leader = scene.node[0];
    if (plan.me() != leader) {
        plan.signal({&leader, 1});
        plan.wait({&leader, 1});
        return;
    }
    std::vector<Rank> leaders;
    for (const std::vector<Rank>& members : scene.layout.nodes) leaders.push_back(members.front());
    plan.wait(scene.node.ranks());
    disseminate(plan, Group(std::move(leaders), plan.me()));
    plan.signal(scene.node.ranks());
}

}  // namespace isthmus
