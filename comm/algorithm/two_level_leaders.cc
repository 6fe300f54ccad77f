// Small payloads over several nodes: what a node has comes to one rank of it, its leader, and only
// leaders send to each other. One message leaves a node where a rail would have one for each rank.
#include <utility>

#include "comm/algorithm/bruck.hpp"
#include "comm/algorithm/chunks.hpp"
#include "comm/algorithm/doubling.hpp"
#include "comm/algorithm/levels.hpp"
#include "comm/algorithm/node_level.hpp"
#include "comm/algorithm/tree.hpp"
#include "comm/algorithm/two_level.hpp"

namespace isthmus {
namespace {

/// The first rank of each node; the root where it is.
std::vector<Rank> leadersOf(const Scene& scene, Rank root) {
    std::vector<Rank> leaders;
    for (const std::vector<Rank>& members : scene.layout.nodes) leaders.push_back(members.front());
    if (root >= 0) leaders[static_cast<std::size_t>(scene.rootNode())] = root;
    return leaders;
}

/// My node as its leader and the others see it.
class LedNode {
public:
    /// `shown`: what each rank's shared slots have room for.
    LedNode(PlanBuilder& plan, const Scene& scene, std::vector<Rank> leaders,
            const std::vector<ChunkName>& shown)
        : plan_(plan), scene_(scene), leaders_(std::move(leaders)) {
        plan_.setSharedOutlivesCall(true);
        plan_.grabShared(shown);
    }

    bool isLeader() const { return plan_.me() == leader(); }
    Rank leader() const { return leaders_[static_cast<std::size_t>(scene_.myNode)]; }
    Group leaders() const { return {leaders_, plan_.me()}; }

    /// Leader: until all of the node have shown what they have; the others show these chunks.
    void gather(const Slice& input, const Chunks& slots) {
        if (isLeader()) return plan_.wait(scene_.node.ranks());
        const Rank to = leader();
        plan_.copy(plan_.shared()(slots), input);
        plan_.signal({&to, 1});
    }

    /// The others: until the leader has everything.
    void release() {
        if (isLeader()) return plan_.signal(scene_.node.ranks());
        const Rank from = leader();
        plan_.wait({&from, 1});
    }

    /// The leader's and the others' contributions, in the order of ranks.
    std::vector<Slice> contributions(const Chunks& chunks) const {
        std::vector<Slice> terms;
        for (const Rank rank : scene_.node.ranks()) {
            terms.push_back(rank == plan_.me() ? plan_.input()(chunks)
                                               : plan_.at(rank).shared(chunks));
        }
        return terms;
    }

    /// What the leader holds there to my output.
    void take(const Slice& output, const Chunks& slots) {
        plan_.copy(output, plan_.at(leader()).shared(slots));
    }

private:
    PlanBuilder& plan_;
    const Scene& scene_;
    std::vector<Rank> leaders_;
};

/// The root's node first, then racks together.
Group leadersFromRoot(const Scene& scene, Rank me) {
    const std::vector<Rank> leaders = leadersOf(scene, scene.root);
    std::vector<Rank> ranks;
    for (const int node : nodesFrom(scene.layout, scene.rootNode())) {
        ranks.push_back(leaders[static_cast<std::size_t>(node)]);
    }
    return {std::move(ranks), me};
}

const std::vector<Rank>& membersOf(const Scene& scene, int node) {
    return scene.layout.nodes[static_cast<std::size_t>(node)];
}

/// Shared slots of an all-to-all: my blocks by destination, then those of every rank for each of my
/// node, where a leader keeps what came from other nodes.
std::vector<ChunkName> slotsOfExchange(const PlanBuilder& plan, const Scene& scene) {
    std::vector<ChunkName> names;
    const auto name = [&](Rank from, Rank to) {
        for (int chunk = 0; chunk < plan.chunksPerBlock(); ++chunk) {
            names.push_back({from * plan.ranks() + to, chunk});
        }
    };
    for (Rank to = 0; to < scene.ranks(); ++to) name(plan.me(), to);
    for (Rank from = 0; from < scene.ranks(); ++from) {
        for (const Rank mate : scene.node.ranks()) name(from, mate);
    }
    return names;
}

/// Of what `from` sent to the `position`-th rank of my node.
Chunks arrived(const PlanBuilder& plan, const Scene& scene, Rank from, int position) {
    return block(plan, scene.ranks() + from * scene.node.size() + position);
}

/// Piece p is the blocks of the ranks of node p.
Pieces blocksOfNodes(const PlanBuilder& plan, const Scene& scene) {
    Pieces pieces;
    for (const std::vector<Rank>& members : scene.layout.nodes) {
        pieces.push_back(chunksOf(plan, members));
    }
    return pieces;
}

/// Every leader sends every other one its sums of the blocks there. `sums`: of every chunk.
void exchangeSums(PlanBuilder& plan, const Group& leaders, const Pieces& pieces,
                  const Slice& sums) {
    const auto sumOf = [&](const Chunks& chunks) {
        Slice slice;
        for (const int chunk : chunks) slice.push_back(sums[static_cast<std::size_t>(chunk)]);
        return slice;
    };
    const Chunks& mine = pieces[static_cast<std::size_t>(leaders.me())];
    std::vector<Slice> terms(pieces.size(), sumOf(mine));
    for (int hops = 1; hops < leaders.size(); ++hops) {
        const int to = leaders.wrap(leaders.me() + hops);
        const int from = leaders.wrap(leaders.me() - hops);
        plan.send(leaders[to], sumOf(pieces[static_cast<std::size_t>(to)]));
        Slice& term = terms[static_cast<std::size_t>(from)];
        term = scratchLike(plan, plan.shared()(mine));
        plan.recv(leaders[from], term);
    }
    plan.reduce(plan.shared()(mine), terms, Completes::kYes);
}

}  // namespace

void leadersAllReduce(PlanBuilder& plan, const Scene& scene) {
    const Chunks all = allBlocks(plan, 1);
    LedNode node(plan, scene, leadersOf(scene, -1), blockNames(plan, 1));
    node.gather(plan.input()(all), all);
    if (node.isLeader()) {
        const std::vector<Slice> terms = node.contributions(all);
        if (terms.size() > 1) plan.reduce(plan.shared()(all), terms, Completes::kNo);
        doublingAllReduce(plan, node.leaders(), all,
                          terms.size() > 1 ? plan.shared() : plan.input(), plan.shared(),
                          Completes::kYes);
    }
    node.release();
    node.take(plan.output()(all), all);
}

void leadersAllGather(PlanBuilder& plan, const Scene& scene) {
    const Chunks all = allBlocks(plan, scene.ranks());
    const Slice own = plan.input()(block(plan, 0));
    LedNode node(plan, scene, leadersOf(scene, -1), blockNames(plan, scene.ranks()));
    node.gather(own, block(plan, plan.me()));
    if (node.isLeader()) {
        plan.copy(plan.shared()(block(plan, plan.me())), own);
        for (const Rank mate : scene.node.ranks()) {
            if (mate == plan.me()) continue;
            plan.copy(plan.shared()(block(plan, mate)), plan.at(mate).shared(block(plan, mate)));
        }
        bruckAllGather(plan, node.leaders(), blocksOfNodes(plan, scene), plan.shared(), 2);
    }
    node.release();
    node.take(plan.output()(all), all);
}

void leadersReduceScatter(PlanBuilder& plan, const Scene& scene) {
    const Chunks all = allBlocks(plan, scene.ranks());
    const Chunks mine = block(plan, plan.me());
    LedNode node(plan, scene, leadersOf(scene, -1), blockNames(plan, scene.ranks()));
    node.gather(plan.input()(all), all);
    if (node.isLeader()) {
        const std::vector<Slice> terms = node.contributions(all);
        Slice sums = terms.front();
        if (terms.size() > 1) {
            sums = scratchLike(plan, plan.shared()(all));
            plan.reduce(sums, terms, Completes::kNo);
        }
        exchangeSums(plan, node.leaders(), blocksOfNodes(plan, scene), sums);
    }
    node.release();
    node.take(outputOfMyBlock(plan)(mine), mine);
}

void leadersBroadcast(PlanBuilder& plan, const Scene& scene) {
    const Chunks all = allBlocks(plan, 1);
    const bool isRoot = plan.me() == scene.root;
    LedNode node(plan, scene, leadersOf(scene, scene.root), blockNames(plan, 1));
    if (isRoot && scene.node.size() > 1) plan.copy(plan.shared()(all), plan.input()(all));
    if (isRoot) node.release();
    if (node.isLeader()) {
        treeBroadcast(plan, leadersFromRoot(scene, plan.me()), binomial,
                      isRoot ? plan.input()(all) : Slice{}, plan.shared()(all));
    }
    if (isRoot) return plan.copy(plan.output()(all), plan.input()(all));
    node.release();
    node.take(plan.output()(all), all);
}

void leadersReduce(PlanBuilder& plan, const Scene& scene) {
    const Chunks all = allBlocks(plan, 1);
    LedNode node(plan, scene, leadersOf(scene, scene.root), blockNames(plan, 1));
    node.gather(plan.input()(all), all);
    if (!node.isLeader()) return;
    const std::vector<Slice> terms = node.contributions(all);
    Slice sum = terms.front();
    if (terms.size() > 1) {
        sum = scratchLike(plan, terms.front());
        plan.reduce(sum, terms, Completes::kNo);
    }
    treeReduce(plan, leadersFromRoot(scene, plan.me()), binomial, sum,
               plan.me() == scene.root ? plan.output()(all) : Slice{}, Completes::kYes);
}

void leadersAllToAll(PlanBuilder& plan, const Scene& scene) {
    const Chunks all = allBlocks(plan, scene.ranks());
    LedNode led(plan, scene, leadersOf(scene, -1), slotsOfExchange(plan, scene));
    led.gather(plan.input()(all), all);
    if (led.isLeader()) {
        plan.copy(plan.shared()(all), plan.input()(all));
        const Group leaders = led.leaders();
        for (int hops = 1; hops < leaders.size(); ++hops) {
            const int to = leaders.wrap(leaders.me() + hops);
            const int from = leaders.wrap(leaders.me() - hops);
            std::vector<Slice> leaving;
            for (const Rank mate : scene.node.ranks()) {
                leaving.push_back(plan.at(mate).shared(chunksOf(plan, membersOf(scene, to))));
            }
            Chunks arriving;
            for (const Rank rank : membersOf(scene, from)) {
                for (int mate = 0; mate < scene.node.size(); ++mate) {
                    const Chunks slot = arrived(plan, scene, rank, mate);
                    arriving.insert(arriving.end(), slot.begin(), slot.end());
                }
            }
            plan.send(leaders[to], joined(leaving));
            plan.recv(leaders[from], plan.shared()(arriving));
        }
    }
    led.release();
    for (Rank from = 0; from < scene.ranks(); ++from) {
        const Slice mine = plan.output()(block(plan, from));
        if (from == plan.me()) {
            plan.copy(mine, plan.input()(block(plan, from)));
        } else if (scene.isMate(from)) {
            plan.copy(mine, plan.at(from).shared(block(plan, plan.me())));
        } else {
            led.take(mine, arrived(plan, scene, from, scene.node.me()));
        }
    }
}

}  // namespace isthmus
