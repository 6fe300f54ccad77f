#include <algorithm>
#include <utility>

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

/// My links of each level: those of blocks that I carry. Both ends go by the node at their far end
/// and, for each, by the homes after that node, so their messages meet.
class Links {
public:
    Links(const Scene& scene, const BlockRails& rails, Rank me)
        : scene_(scene), rails_(rails), ways_(scene.layout) {
        fromMe_.resize(static_cast<std::size_t>(levels()));
        toMe_.resize(fromMe_.size());
        for (int hops = 0; hops < scene.nodes(); ++hops) {
            const int home = (scene.myNode + hops) % scene.nodes();
            for (const Rank block : scene.layout.nodes[static_cast<std::size_t>(home)]) {
                if (rails.helper(scene.myNode, block) == me) add(block, home);
            }
        }
        for (std::vector<Link>& links : toMe_) {
            std::stable_sort(links.begin(), links.end(), [&](const Link& one, const Link& other) {
                return placeOf(one) < placeOf(other);
            });
        }
    }

    int levels() const { return ways_.levels(); }

    /// Calls use(link, carrier there) for the links of a level from far nodes to mine: the nodes
    /// before mine first.
    template <typename Use>
    void toMe(int level, const Use& use) const {
        for (const Link& link : toMe_[static_cast<std::size_t>(level)])
            use(link, rails_.helper(link.node, link.block));
    }

    /// The same for the links from my node.
    template <typename Use>
    void fromMe(int level, const Use& use) const {
        for (const Link& link : fromMe_[static_cast<std::size_t>(level)])
            use(link, rails_.helper(link.next, link.block));
    }

private:
    void add(Rank block, int home) {
        const int here = scene_.myNode;
        if (home != here) {
            const BlockWays::Step step = ways_.towardsHome(here, block, home);
            fromMe_[static_cast<std::size_t>(step.level)].push_back({block, here, step.node});
        }
        for (const BlockWays::Step& from : ways_.comingTo(here, block, home))
            toMe_[static_cast<std::size_t>(from.level)].push_back({block, from.node, here});
    }
    /// How far before my node it begins, and how far from there to the block's home.
    std::pair<int, int> placeOf(const Link& link) const {
        return {rails_.hops(link.node, scene_.myNode),
                rails_.hops(link.node, rails_.homeOf(link.block))};
    }

    const Scene& scene_;
    const BlockRails& rails_;
    BlockWays ways_;
    std::vector<std::vector<Link>> fromMe_;  // by level
    std::vector<std::vector<Link>> toMe_;
};

/// Sums grow over the gates and end at home.
void toHome(PlanBuilder& plan, const Links& links, const Held& sums) {
    std::vector<std::vector<Slice>> terms;  // by block
    for (const Slice& sum : sums) terms.push_back({sum});
    for (int level = 0; level < links.levels(); ++level) {
        links.fromMe(level, [&](const Link& link, Rank to) {
            const auto block = static_cast<std::size_t>(link.block);
            if (terms[block].size() > 1) plan.reduce(sums[block], terms[block], Completes::kNo);
            plan.send(to, sums[block]);
        });
        links.toMe(level, [&](const Link& link, Rank from) {
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
        links.fromMe(level, [&](const Link& link, Rank from) {
            plan.recv(from, held[static_cast<std::size_t>(link.block)]);
        });
        links.toMe(level, [&](const Link& link, Rank to) {
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
    toHome(plan, Links(scene, rails, plan.me()), sums);
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
    fromHome(plan, Links(scene, rails, plan.me()), held);
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
