#include "comm/algorithm/chunks.hpp"
#include "comm/algorithm/double_tree.hpp"
#include "comm/algorithm/levels.hpp"
#include "comm/algorithm/node_level.hpp"
#include "comm/algorithm/sharing.hpp"
#include "comm/algorithm/two_level.hpp"

namespace isthmus {
namespace {

/// Chunk c of each shard goes through the c-th of these.
using Trees = std::initializer_list<TreeShape>;

/// Chunks of the shards that each rank of my node serves: they are neighbours.
std::vector<Chunks> sharesOf(const Shards& shards, const Scene& scene, const Trees& trees) {
    const int parts = static_cast<int>(trees.size());
    std::vector<Chunks> shares;
    for (const Rank rank : scene.node.ranks()) {
        const std::vector<int> served = shards.servedBy(scene.myNode, rank);
        shares.push_back(run(served.front() * parts, static_cast<int>(served.size()) * parts));
    }
    return shares;
}

/// Calls `go(rail, tree, chunk)` for all that I serve, the root's node first on each rail,
/// then its rack: a chain enters every rack once.
template <typename Go>
void alongRails(const PlanBuilder& plan, const Scene& scene, const Shards& shards,
                const Trees& trees, const Go& go) {
    const int parts = static_cast<int>(trees.size());
    const std::vector<int> nodes = nodesFrom(scene.layout, scene.rootNode());
    for (const int shard : shards.servedBy(scene.myNode, plan.me())) {
        const Group rail(shards.rail(shard, nodes), plan.me());
        int chunk = shard * parts;
        for (const TreeShape tree : trees) go(rail, tree, chunk++);
    }
}

/// Root's node: every rank reads the root's input, and sends its shards on from there.
void broadcastFromHome(PlanBuilder& plan, const Scene& scene, const Shards& shards,
                       const Trees& trees) {
    NodeLevel node(plan, scene.node, blockNames(plan, 1));
    const Chunks all = allBlocks(plan, 1);
    const bool isRoot = plan.me() == scene.root;
    if (isRoot) {
        node.offerInput(all);
    } else {
        plan.wait({&scene.root, 1});
    }
    const Slice whole = node.inputOf(scene.root, all);
    alongRails(plan, scene, shards, trees, [&](const Group& rail, TreeShape tree, int chunk) {
        treeBroadcast(plan, rail, tree, {whole[static_cast<std::size_t>(chunk)]}, {});
    });
    plan.copy(plan.output()(all), whole);
    if (isRoot) {
        node.waitForAll();
    } else {
        plan.signal({&scene.root, 1});
    }
}

void broadcast(PlanBuilder& plan, const Scene& scene, const Trees& trees) {
    const Shards shards(scene.layout);
    if (scene.myNode == scene.rootNode()) return broadcastFromHome(plan, scene, shards, trees);
    NodeLevel node(plan, scene.node, blockNames(plan, 1));
    if (!node.isStaged()) node.signalAll();
    alongRails(plan, scene, shards, trees, [&](const Group& rail, TreeShape tree, int chunk) {
        treeBroadcast(plan, rail, tree, {}, node.held({chunk}));
    });
    if (!node.isStaged()) node.waitForAll();
    node.spread(sharesOf(shards, scene, trees));
}

void reduceToRoot(PlanBuilder& plan, const Scene& scene, const Trees& trees) {
    const Shards shards(scene.layout);
    const bool isHome = scene.myNode == scene.rootNode();
    NodeLevel node(plan, scene.node, blockNames(plan, 1));
    const std::vector<Chunks> shares = sharesOf(shards, scene, trees);
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
    alongRails(plan, scene, shards, trees, [&](const Group& rail, TreeShape tree, int chunk) {
        treeReduce(plan, rail, tree, {sum[static_cast<std::size_t>(chunk - mine.front())]},
                   isHome ? node.heldBy(holder, {chunk}) : Slice{}, Completes::kYes);
    });
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
        const Chunks chunks = chunksOf(plan, rails.carriedBy(rank));
        plan.copy(plan.output()(chunks), node.heldBy(rank, chunks));
    }
    node.signalAll();
}

void scatterAtHome(PlanBuilder& plan, const Scene& scene, const BlockRails& rails) {
    NodeLevel node(plan, scene.node, blockNames(plan, scene.ranks()));
    const bool isRoot = plan.me() == scene.root;
    if (isRoot) {
        node.offerInput(chunksOf(plan, rails.carriedBeside(plan.me())));
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
    broadcast(plan, scene, {chain});
}

void twoLevelBinomialBroadcast(PlanBuilder& plan, const Scene& scene) {
    broadcast(plan, scene, {binomial});
}

void twoLevelDoubleTreeBroadcast(PlanBuilder& plan, const Scene& scene) {
    broadcast(plan, scene, {firstTreeFromRoot, secondTreeFromRoot});
}

void twoLevelChainReduce(PlanBuilder& plan, const Scene& scene) {
    reduceToRoot(plan, scene, {chain});
}

void twoLevelBinomialReduce(PlanBuilder& plan, const Scene& scene) {
    reduceToRoot(plan, scene, {binomial});
}

void twoLevelDoubleTreeReduce(PlanBuilder& plan, const Scene& scene) {
    reduceToRoot(plan, scene, {firstTreeFromRoot, secondTreeFromRoot});
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
