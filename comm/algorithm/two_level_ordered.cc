#include <functional>

#include "comm/algorithm/chunks.hpp"
#include "comm/algorithm/node_level.hpp"
#include "comm/algorithm/sharing.hpp"
#include "comm/algorithm/tree.hpp"
#include "comm/algorithm/two_level.hpp"

namespace isthmus {
namespace {

/// Neighbouring ranks of one node.
struct RankRun {
    int node = 0;
    std::vector<Rank> ranks;
};

std::vector<RankRun> runsOf(const Scene& scene) {
    std::vector<RankRun> runs;
    for (Rank rank = 0; rank < scene.ranks(); ++rank) {
        const int node = scene.nodeOf[static_cast<std::size_t>(rank)];
        if (runs.empty() || runs.back().node != node) runs.push_back({node, {}});
        runs.back().ranks.push_back(rank);
    }
    return runs;
}

/// Who works for a node on the chunks at hand.
using Helper = std::function<Rank(int node)>;

/// One walk through the ranks in their order: rank 0's input, plus rank 1's, plus rank 2's ... Each
/// run adds its ranks to what came from the run before and hands the sum to the next.
class OrderedSum {
public:
    OrderedSum(PlanBuilder& plan, const Scene& scene, const NodeLevel& node)
        : plan_(plan), scene_(scene), node_(node), runs_(runsOf(scene)) {}

    int lastNode() const { return runs_.back().node; }

    /// My part of it; who works for the last run's node has the whole sum at `result`.
    void write(const Chunks& chunks, const Helper& helper, const Slice& result) {
        if (helper(scene_.myNode) != plan_.me()) return;
        for (std::size_t index = 0; index < runs_.size(); ++index) {
            if (runs_[index].node != scene_.myNode) continue;
            std::vector<Slice> terms = termsOf(index, chunks, helper);
            if (index + 1 == runs_.size()) return combine(plan_, result, terms, Completes::kYes);
            if (terms.size() > 1) {
                const Slice sum =
                    index == 0 ? scratchLike(plan_, plan_.input()(chunks)) : terms.front();
                plan_.reduce(sum, terms, Completes::kNo);
                terms.front() = sum;
            }
            plan_.send(helper(runs_[index + 1].node), terms.front());
        }
    }

private:
    std::vector<Slice> termsOf(std::size_t index, const Chunks& chunks, const Helper& helper) {
        std::vector<Slice> terms;
        if (index > 0) {
            terms.push_back(scratchLike(plan_, plan_.input()(chunks)));
            plan_.recv(helper(runs_[index - 1].node), terms.front());
        }
        for (const Rank rank : runs_[index].ranks) terms.push_back(node_.inputOf(rank, chunks));
        return terms;
    }

    PlanBuilder& plan_;
    const Scene& scene_;
    const NodeLevel& node_;
    std::vector<RankRun> runs_;
};

/// Shards (one chunk each) of each rank of my node, and what the others of it read of my input.
struct Shares {
    std::vector<Chunks> each;
    Chunks mine;
    Chunks others;

    Shares(const Shards& shards, const Scene& scene, Rank me) {
        for (const Rank rank : scene.node.ranks()) {
            const Chunks& share = each.emplace_back(shards.servedBy(scene.myNode, rank));
            Chunks& into = rank == me ? mine : others;
            into.insert(into.end(), share.begin(), share.end());
        }
    }
};

Helper helperFor(const Shards& shards, int shard) {
    return [&shards, shard](int node) { return shards.helper(node, shard); };
}

}  // namespace

void twoLevelOrderedAllReduce(PlanBuilder& plan, const Scene& scene) {
    const Shards shards(scene.layout);
    const Shares shares(shards, scene, plan.me());
    NodeLevel node(plan, scene.node, blockNames(plan, 1));
    node.offerInput(shares.others);
    node.waitForAll();
    OrderedSum sum(plan, scene, node);
    for (const int shard : shares.mine) {
        const Slice held = node.held({shard});
        sum.write({shard}, helperFor(shards, shard), held);
        const Group rail(shards.rail(shard, sum.lastNode()), plan.me());
        treeBroadcast(plan, rail, chain, held, held);
    }
    node.spread(shares.each);
}

void twoLevelOrderedReduce(PlanBuilder& plan, const Scene& scene) {
    const Shards shards(scene.layout);
    const Shares shares(shards, scene, plan.me());
    const bool isHome = scene.myNode == scene.rootNode();
    NodeLevel node(plan, scene.node, blockNames(plan, 1));
    node.offerInput(shares.others);
    node.waitForAll();
    OrderedSum sum(plan, scene, node);
    const bool isLast = scene.myNode == sum.lastNode();
    const Rank holder = node.isStaged() ? plan.me() : scene.root;
    for (const int shard : shares.mine) {
        Slice result;
        if (isHome) {
            result = node.heldBy(holder, {shard});
        } else if (isLast) {
            result = scratchLike(plan, plan.input()({shard}));
        }
        sum.write({shard}, helperFor(shards, shard), result);
        if (isLast && !isHome) plan.send(shards.helper(scene.rootNode(), shard), result);
        if (isHome && !isLast) plan.recv(shards.helper(sum.lastNode(), shard), result);
    }
    if (!isHome) {
        node.signalAll();  // their inputs are read
        return node.waitForAll();
    }
    node.meet();
    if (!node.isStaged()) return;
    if (plan.me() == scene.root) node.pull(shares.each);
    node.meet();
}

void twoLevelOrderedReduceScatter(PlanBuilder& plan, const Scene& scene) {
    const BlockRails rails(scene.layout, scene.nodeOf);
    NodeLevel node(plan, scene.node, blockNames(plan, scene.ranks()));
    node.offerInput(chunksOf(plan, rails.carriedBeside(plan.me())));
    node.waitForAll();
    OrderedSum sum(plan, scene, node);
    for (const Rank rank : rails.carriedBy(plan.me())) {
        const Chunks chunks = block(plan, rank);
        const bool isMine = rank == plan.me();
        const bool isLast = scene.myNode == sum.lastNode();
        Slice result;
        if (isMine) {
            result = outputOfMyBlock(plan)(chunks);
        } else if (isLast) {
            result = scratchLike(plan, plan.input()(chunks));
        }
        sum.write(
            chunks, [&](int at) { return rails.helper(at, rank); }, result);
        if (isLast && !isMine) plan.send(rank, result);
        if (isMine && !isLast) plan.recv(rails.helper(sum.lastNode(), rank), result);
    }
    node.signalAll();  // their inputs are read
    node.waitForAll();
}

}  // namespace isthmus
