#include "comm/algorithm/chunks.hpp"
#include "comm/algorithm/levels.hpp"
#include "comm/algorithm/node_level.hpp"
#include "comm/algorithm/three_level.hpp"

namespace isthmus {
namespace {

/// Where each block is held by me, by rank of the block; empty for those that I do not carry.
using Held = std::vector<Slice>;

/// A block's way between a node and the next one towards its home.
struct Link {
    Rank block;
    int node;
    int next;
};

/// The links of one level by the node at their far end, and for each the homes after that node
/// first. Both ends go by it, so their messages meet.
class Links {
public:
    Links(const Scene& scene, const BlockRails& rails)
        : scene_(scene), rails_(rails), ways_(scene.layout) {}

    int levels() const { return ways_.levels(); }

    /// Calls use(link, carrier there) for the links of a level from far nodes to mine whose blocks
    /// I carry: the nodes before mine first.
    template <typename Use>
    void toMe(Rank me, int level, const Use& use) const {
        for (int hops = 1; hops < scene_.nodes(); ++hops) {
            const int far = (scene_.myNode + scene_.nodes() - hops) % scene_.nodes();
            forBlocks(far, level, [&](const Link& link) {
                const bool isMine =
                    link.next == scene_.myNode && rails_.helper(link.next, link.block) == me;
                if (isMine) use(link, rails_.helper(link.node, link.block));
            });
        }
    }

    /// The same for the links from my node.
    template <typename Use>
    void fromMe(Rank me, int level, const Use& use) const {
        forBlocks(scene_.myNode, level, [&](const Link& link) {
            if (rails_.helper(link.node, link.block) != me) return;
            use(link, rails_.helper(link.next, link.block));
        });
    }

private:
    template <typename Use>
    void forBlocks(int node, int level, const Use& use) const {
        for (int hops = 1; hops < scene_.nodes(); ++hops) {
            const int home = (node + hops) % scene_.nodes();
            for (const Rank block : scene_.layout.nodes[static_cast<std::size_t>(home)]) {
                const BlockWays::Step step = ways_.towardsHome(node, block);
                if (step.level == level) use(Link{block, node, step.node});
            }
        }
    }

    const Scene& scene_;
    const BlockRails& rails_;
    BlockWays ways_;
};

/// Sums grow over the gates and end at home.
void toHome(PlanBuilder& plan, const Links& links, const Held& sums) {
    std::vector<std::vector<Slice>> terms;  // by block
    for (const Slice& sum : sums) terms.push_back({sum});
    for (int level = 0; level < links.levels(); ++level) {
        links.fromMe(plan.me(), level, [&](const Link& link, Rank to) {
            const auto block = static_cast<std::size_t>(link.block);
            if (terms[block].size() > 1) plan.reduce(sums[block], terms[block], Completes::kNo);
            plan.send(to, sums[block]);
        });
        links.toMe(plan.me(), level, [&](const Link& link, Rank from) {
            const auto block = static_cast<std::size_t>(link.block);
            terms[block].push_back(scratchLike(plan, sums[block]));
            plan.recv(from, terms[block].back());
        });
    }
    const auto mine = static_cast<std::size_t>(plan.me());
    plan.reduce(sums[mine], terms[mine], Completes::kYes);
}

void fromHome(PlanBuilder& plan, const Links& links, const Held& held) {
    for (int level = links.levels() - 1; level >= 0; --level) {
        links.fromMe(plan.me(), level, [&](const Link& link, Rank from) {
            plan.recv(from, held[static_cast<std::size_t>(link.block)]);
        });
        links.toMe(plan.me(), level, [&](const Link& link, Rank to) {
            plan.send(to, held[static_cast<std::size_t>(link.block)]);
        });
    }
}

}  // namespace

void threeLevelReduceScatter(PlanBuilder& plan, const Scene& scene) {
    const BlockRails rails(scene.layout, scene.nodeOf);
    NodeLevel node(plan, scene.node, blockNames(plan, scene.ranks()));
    Held sums(scene.nodeOf.size());
    node.offerInput(chunksOf(plan, rails.carriedBeside(plan.me())));
    node.waitForAll();
    for (const Rank rank : rails.carriedBy(plan.me())) {
        const Chunks chunks = block(plan, rank);
        Slice& sum = sums[static_cast<std::size_t>(rank)];
        sum = rank == plan.me() ? outputOfMyBlock(plan)(chunks)
                                : scratchLike(plan, plan.input()(chunks));
        node.sumInputs(sum, chunks, Completes::kNo);
    }
    node.signalAll();  // their inputs are read
    toHome(plan, Links(scene, rails), sums);
    node.waitForAll();
}

void threeLevelAllGather(PlanBuilder& plan, const Scene& scene) {
    const BlockRails rails(scene.layout, scene.nodeOf);
    NodeLevel node(plan, scene.node, blockNames(plan, scene.ranks()));
    const Slice own = plan.input()(block(plan, 0));
    Held held(scene.nodeOf.size());
    for (const Rank rank : rails.carriedBy(plan.me())) {
        held[static_cast<std::size_t>(rank)] =
            rank == plan.me() ? own : node.held(block(plan, rank));
    }
    if (node.isStaged()) {
        plan.copy(node.held(block(plan, plan.me())), own);
    } else {
        node.signalAll();
    }
    fromHome(plan, Links(scene, rails), held);
    if (node.isStaged()) {
        std::vector<Chunks> carried;
        for (const Rank rank : scene.node.ranks()) {
            carried.push_back(chunksOf(plan, rails.carriedBy(rank)));
        }
        node.spread(carried);
        return;
    }
    plan.copy(plan.output()(block(plan, plan.me())), own);
    node.waitForAll();
    for (const Rank rank : rails.carriedBy(plan.me())) {
        node.push(block(plan, rank), held[static_cast<std::size_t>(rank)]);
    }
    node.meet();
}

}  // namespace isthmus
