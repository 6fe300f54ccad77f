#include "comm/algorithm/chunks.hpp"
#include "comm/algorithm/exchange.hpp"
#include "comm/algorithm/levels.hpp"
#include "comm/algorithm/node_level.hpp"
#include "comm/algorithm/ring.hpp"
#include "comm/algorithm/three_level.hpp"

namespace isthmus {
namespace {

/// Between the outermost units.
using Outermost = void (*)(PlanBuilder&, const Group& group, const Pieces& pieces,
                           const Place& from, const Place& to, Completes completes);

/// Sums over the rails of all levels what lies at `from`; everything that I carry for my node ends
/// at `to`.
void overRails(PlanBuilder& plan, const std::vector<std::vector<Rail>>& levels, Outermost outermost,
               Place from, const Place& to) {
    for (const std::vector<Rail>& rails : levels) {
        for (const Rail& rail : rails) {
            const Group group(rail.ranks, plan.me());
            if (&rails == &levels.back()) {
                outermost(plan, group, rail.pieces, from, to, Completes::kYes);
            } else {
                exchangeReduceScatter(plan, group, rail.pieces, from, to, Completes::kNo);
            }
        }
        from = to;
    }
    for (std::size_t level = levels.size() - 1; level-- > 0;) {
        for (const Rail& rail : levels[level]) {
            const Group group(rail.ranks, plan.me());
            const Chunks& mine = rail.pieces[static_cast<std::size_t>(group.me())];
            exchangeAllGather(plan, group, rail.pieces, to(mine), to);
        }
    }
}

void allReduce(PlanBuilder& plan, const Scene& scene, Outermost outermost) {
    const Levels levels(scene.layout);
    NodeLevel node(plan, scene.node, blockNames(plan, 1));
    const std::vector<Chunks> shares = levels.sharesOf(scene.myNode);
    const Chunks& mine = shares[static_cast<std::size_t>(scene.node.me())];
    Chunks others;
    for (const Chunks& share : shares) {
        if (&share != &mine) others.insert(others.end(), share.begin(), share.end());
    }
    node.offerInput(others);
    node.waitForAll();
    const bool isAlone = scene.node.size() == 1;
    if (!isAlone) node.sumInputs(node.held(mine), mine, Completes::kNo);
    overRails(plan, levels.railsOf(plan.me()), outermost, isAlone ? plan.input() : node.heldPlace(),
              node.heldPlace());
    node.spread(shares);
}

}  // namespace

Chunking piecesOfLevels(const Layout& layout) {
    return Levels(layout).chunking();
}

void threeLevelExchangeAllReduce(PlanBuilder& plan, const Scene& scene) {
    allReduce(plan, scene, exchangeAllReduce);
}

void threeLevelRingAllReduce(PlanBuilder& plan, const Scene& scene) {
    allReduce(plan, scene, ringAllReduce);
}

}  // namespace isthmus
