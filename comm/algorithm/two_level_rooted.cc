#include "comm/algorithm/chunks.hpp"
#include "comm/algorithm/node_level.hpp"
#include "comm/algorithm/sharing.hpp"
#include "comm/algorithm/tree.hpp"
#include "comm/algorithm/two_level.hpp"

namespace isthmus {
namespace {

/// Shards (one chunk each) that each rank of my node serves.
std::vector<Chunks> sharesOf(const Shards& shards, const Scene& scene) {
    std::vector<Chunks> shares;
    for (const Rank rank : scene.node.ranks()) {
        shares.push_back(shards.servedBy(scene.myNode, rank));
    }
    return shares;
}

/// Root's node: every rank reads the root's input, and sends its shards on from there.
void broadcastFromHome(PlanBuilder& plan, const Scene& scene, const Shards& shards,
                       TreeShape shape) {
    NodeLevel node(plan, scene.node, blockNames(plan, 1));
    const Chunks all = allBlocks(plan, 1);
    const bool isRoot = plan.me() == scene.root;
    if (isRoot) {
        node.offerInput(all);
    } else {
        plan.wait({&scene.root, 1});
    }
    const Slice whole = node.inputOf(scene.root, all);
    for (const int shard : shards.servedBy(scene.myNode, plan.me())) {
        const Group rail(shards.rail(shard, scene.myNode), plan.me());
        treeBroadcast(plan, rail, shape, {whole[static_cast<std::size_t>(shard)]}, {});
    }
    plan.copy(plan.output()(all), whole);
    if (isRoot) {
        node.waitForAll();
    } else {
        plan.signal({&scene.root, 1});
    }
}

void broadcast(PlanBuilder& plan, const Scene& scene, TreeShape shape) {
    const Shards shards(scene.layout);
    if (scene.myNode == scene.rootNode()) return broadcastFromHome(plan, scene, shards, shape);
    NodeLevel node(plan, scene.node, blockNames(plan, 1));
    if (!node.isStaged()) node.signalAll();
    for (const int shard : shards.servedBy(scene.myNode, plan.me())) {
        const Group rail(shards.rail(shard, scene.rootNode()), plan.me());
        treeBroadcast(plan, rail, shape, {}, node.held({shard}));
    }
    if (!node.isStaged()) node.waitForAll();
    node.spread(sharesOf(shards, scene));
}

void reduceToRoot(PlanBuilder& plan, const Scene& scene, TreeShape shape) {
    const Shards shards(scene.layout);
    const bool isHome = scene.myNode == scene.rootNode();
    NodeLevel node(plan, scene.node, blockNames(plan, 1));
    const std::vector<Chunks> shares = sharesOf(shards, scene);
    const Chunks& mine = shares[static_cast<std::size_t>(scene.node.me())];
    Chunks others;
    for (const Chunks& share : shares) {
        if (&share != &mine) others.insert(others.end(), share.begin(), share.end());
    }
    node.offerInput(others);
    node.waitForAll();
    Slice sum = plan.input()(mine);
    if (scene.node.size() > 1) {
        sum = scratchLike(plan, sum);
        node.sumInputs(sum, mine, Completes::kNo);
    }
    if (!isHome) node.signalAll();  // their inputs are read
    const Rank holder = node.isStaged() ? plan.me() : scene.root;
    for (std::size_t index = 0; index < mine.size(); ++index) {
        const Group rail(shards.rail(mine[index], scene.rootNode()), plan.me());
        treeReduce(plan, rail, shape, {sum[index]},
                   isHome ? node.heldBy(holder, {mine[index]}) : Slice{}, Completes::kYes);
    }
    if (!isHome) return node.waitForAll();
    node.meet();
    if (!node.isStaged()) return;
    if (plan.me() == scene.root) node.pull(shares);
    node.meet();
}

/// Blocks from other nodes that pass through `rank` of the root's node.
std::vector<Rank> passingThrough(const BlockRails& rails, Rank rank) {
    std::vector<Rank> blocks;
    for (const Rank from : rails.carriedBy(rank)) {
        if (from != rank) blocks.push_back(from);
    }
    return blocks;
}

Chunks chunksCarriedBy(const PlanBuilder& plan, const BlockRails& rails, Rank rank) {
    Chunks chunks;
    for (const Rank from : rails.carriedBy(rank)) {
        const Chunks more = block(plan, from);
        chunks.insert(chunks.end(), more.begin(), more.end());
    }
    return chunks;
}

/// Root's node: blocks from outside arrive at all of its ranks, each in the root's output or in its
/// own shared slots.
void gatherAtHome(PlanBuilder& plan, const Scene& scene, const BlockRails& rails) {
    NodeLevel node(plan, scene.node, blockNames(plan, scene.ranks()));
    const bool isRoot = plan.me() == scene.root;
    const bool isDirect = isRoot || !node.isStaged();
    const Rank holder = isDirect ? scene.root : plan.me();
    if (isRoot && !node.isStaged()) node.signalAll();
    if (!isRoot && !node.isStaged()) plan.wait({&scene.root, 1});
    const auto place = [&](const Chunks& chunks) {
        return isRoot ? plan.output()(chunks) : node.heldBy(holder, chunks);
    };
    for (const Rank from : passingThrough(rails, plan.me())) {
        plan.recv(from, place(block(plan, from)));
    }
    plan.copy(place(block(plan, plan.me())), plan.input()(block(plan, 0)));
    if (!isRoot) {
        plan.signal({&scene.root, 1});
        if (node.isStaged()) plan.wait({&scene.root, 1});
        return;
    }
    node.waitForAll();
    if (!node.isStaged()) return;
    for (int hops = 1; hops < scene.node.size(); ++hops) {
        const Rank rank = scene.node[scene.node.me() + hops];
        const Chunks chunks = chunksCarriedBy(plan, rails, rank);
        plan.copy(plan.output()(chunks), node.heldBy(rank, chunks));
    }
    node.signalAll();
}

void scatterAtHome(PlanBuilder& plan, const Scene& scene, const BlockRails& rails) {
    NodeLevel node(plan, scene.node, blockNames(plan, scene.ranks()));
    const bool isRoot = plan.me() == scene.root;
    if (isRoot) {
        Chunks others;
        for (const Rank rank : scene.node.ranks()) {
            if (rank == plan.me()) continue;
            const Chunks chunks = chunksCarriedBy(plan, rails, rank);
            others.insert(others.end(), chunks.begin(), chunks.end());
        }
        node.offerInput(others);
    } else {
        plan.wait({&scene.root, 1});
    }
    for (const Rank to : passingThrough(rails, plan.me())) {
        plan.send(to, node.inputOf(scene.root, block(plan, to)));
    }
    plan.copy(plan.output()(block(plan, 0)), node.inputOf(scene.root, block(plan, plan.me())));
    if (isRoot) {
        node.waitForAll();
    } else {
        plan.signal({&scene.root, 1});
    }
}

}  // namespace

void twoLevelChainBroadcast(PlanBuilder& plan, const Scene& scene) {
    broadcast(plan, scene, chain);
}

void twoLevelBinomialBroadcast(PlanBuilder& plan, const Scene& scene) {
    broadcast(plan, scene, binomial);
}

void twoLevelChainReduce(PlanBuilder& plan, const Scene& scene) {
    reduceToRoot(plan, scene, chain);
}

void twoLevelBinomialReduce(PlanBuilder& plan, const Scene& scene) {
    reduceToRoot(plan, scene, binomial);
}

void twoLevelLinearGather(PlanBuilder& plan, const Scene& scene) {
    const BlockRails rails(scene.layout, scene.nodeOf);
    if (scene.myNode == scene.rootNode()) return gatherAtHome(plan, scene, rails);
    plan.send(rails.helper(scene.rootNode(), plan.me()), plan.input()(block(plan, 0)));
}

void twoLevelLinearScatter(PlanBuilder& plan, const Scene& scene) {
    const BlockRails rails(scene.layout, scene.nodeOf);
    if (scene.myNode == scene.rootNode()) return scatterAtHome(plan, scene, rails);
    plan.recv(rails.helper(scene.rootNode(), plan.me()), plan.output()(block(plan, 0)));
}

}  // namespace isthmus
