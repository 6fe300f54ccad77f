#include "comm/algorithm/bidirectional_ring.hpp"
#include "comm/algorithm/butterfly.hpp"
#include "comm/algorithm/chunks.hpp"
#include "comm/algorithm/double_tree.hpp"
#include "comm/algorithm/doubling.hpp"
#include "comm/algorithm/exchange.hpp"
#include "comm/algorithm/halving.hpp"
#include "comm/algorithm/node_level.hpp"
#include "comm/algorithm/ring.hpp"
#include "comm/algorithm/sharing.hpp"
#include "comm/algorithm/two_level.hpp"

namespace isthmus {
namespace {

/// Sums what the rail's members hold of one shard; everybody ends with the whole shard. `pieces`
/// are equal parts of it: one, two, one for each member, or one for each that halves.
using RailAllReduce = void (*)(PlanBuilder&, const Group& rail, const Pieces& pieces,
                               const Place& from, const Place& to);

void ringOnRail(PlanBuilder& plan, const Group& rail, const Pieces& pieces, const Place& from,
                const Place& to) {
    ringAllReduce(plan, rail, pieces, from, to, Completes::kYes);
}

void exchangeOnRail(PlanBuilder& plan, const Group& rail, const Pieces& pieces, const Place& from,
                    const Place& to) {
    exchangeAllReduce(plan, rail, pieces, from, to, Completes::kYes);
}

void doublingOnRail(PlanBuilder& plan, const Group& rail, const Pieces& pieces, const Place& from,
                    const Place& to) {
    doublingAllReduce(plan, rail, pieces.front(), from, to, Completes::kYes);
}

void halvingOnRail(PlanBuilder& plan, const Group& rail, const Pieces& pieces, const Place& from,
                   const Place& to) {
    halvingAllReduce(plan, rail, pieces, from, to, Completes::kYes);
}

void butterflyOnRail(PlanBuilder& plan, const Group& rail, const Pieces& pieces, const Place& from,
                     const Place& to) {
    butterflyAllReduce(plan, rail, radicesOf(rail.size()), pieces, from, to, Completes::kYes);
}

void bidirectionalOnRail(PlanBuilder& plan, const Group& rail, const Pieces& pieces,
                         const Place& from, const Place& to) {
    bidirectionalAllReduce(plan, rail, pieces, from, to, Completes::kYes);
}

void doubleTreeOnRail(PlanBuilder& plan, const Group& rail, const Pieces& pieces, const Place& from,
                      const Place& to) {
    doubleTreeAllReduce(plan, rail, pieces, from, to, Completes::kYes);
}

/// Neighbouring shards of each rank, as one run of chunks.
std::vector<Chunks> sharesOf(const Shards& shards, const Scene& scene, int partsPerShard) {
    std::vector<Chunks> shares;
    for (const Rank rank : scene.node.ranks()) {
        const std::vector<int> served = shards.servedBy(scene.myNode, rank);
        shares.push_back(
            run(served.front() * partsPerShard, static_cast<int>(served.size()) * partsPerShard));
    }
    return shares;
}

void allReduce(PlanBuilder& plan, const Scene& scene, RailAllReduce alongRail) {
    const Shards shards(scene.layout);
    const int parts = plan.chunksPerBlock() / shards.count();
    NodeLevel node(plan, scene.node, blockNames(plan, 1));
    const std::vector<Chunks> shares = sharesOf(shards, scene, parts);
    const Chunks& mine = shares[static_cast<std::size_t>(scene.node.me())];
    Chunks others;
    for (const Chunks& share : shares) {
        if (&share != &mine) others.insert(others.end(), share.begin(), share.end());
    }
    node.offerInput(others);
    node.waitForAll();
    const bool isAlone = scene.node.size() == 1;
    if (!isAlone) node.sumInputs(node.held(mine), mine, Completes::kNo);
    const Place from = isAlone ? plan.input() : node.heldPlace();
    for (const int shard : shards.servedBy(scene.myNode, plan.me())) {
        Pieces pieces;
        for (int part = 0; part < parts; ++part) pieces.push_back({shard * parts + part});
        const Group rail(shards.rail(shard, 0), plan.me());
        alongRail(plan, rail, pieces, from, node.heldPlace());
    }
    node.spread(shares);
}

}  // namespace

Chunking wholeShards(const Layout& layout) {
    return Shards(layout).chunking(1);
}

Chunking halfShards(const Layout& layout) {
    return Shards(layout).chunking(2);
}

Chunking shardsByNodes(const Layout& layout) {
    return Shards(layout).chunking(static_cast<int>(layout.nodes.size()));
}

Chunking shardsByHalvingNodes(const Layout& layout) {
    return Shards(layout).chunking(halvingWorkers(static_cast<int>(layout.nodes.size())));
}

Chunking shardsByShares(const Layout& layout) {
    return Shards(layout).chunking(layout.shares);
}

void twoLevelRingAllReduce(PlanBuilder& plan, const Scene& scene) {
    allReduce(plan, scene, ringOnRail);
}

void twoLevelExchangeAllReduce(PlanBuilder& plan, const Scene& scene) {
    allReduce(plan, scene, exchangeOnRail);
}

void twoLevelDoublingAllReduce(PlanBuilder& plan, const Scene& scene) {
    allReduce(plan, scene, doublingOnRail);
}

void twoLevelHalvingAllReduce(PlanBuilder& plan, const Scene& scene) {
    allReduce(plan, scene, halvingOnRail);
}

void twoLevelButterflyAllReduce(PlanBuilder& plan, const Scene& scene) {
    allReduce(plan, scene, butterflyOnRail);
}

void twoLevelBidirectionalAllReduce(PlanBuilder& plan, const Scene& scene) {
    allReduce(plan, scene, bidirectionalOnRail);
}

void twoLevelDoubleTreeAllReduce(PlanBuilder& plan, const Scene& scene) {
    allReduce(plan, scene, doubleTreeOnRail);
}

}  // namespace isthmus
