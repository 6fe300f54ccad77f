#include "comm/algorithm/chunks.hpp"
#include "comm/algorithm/node_level.hpp"
#include "comm/algorithm/sharing.hpp"
#include "comm/algorithm/two_level.hpp"

namespace isthmus {
namespace {

/// Where each block is held by me, by rank of the block; empty for those that I do not carry.
using Held = std::vector<Slice>;

const Slice& of(const Held& held, Rank block) {
    return held[static_cast<std::size_t>(block)];
}

/// The blocks that a rank carries, by the hops between its node and their homes.
template <typename Hops>
std::vector<std::vector<Rank>> byHops(const BlockRails& rails, Rank rank, const Hops& hopsOf) {
    std::vector<std::vector<Rank>> blocks(static_cast<std::size_t>(rails.nodes()));
    for (const Rank block : rails.carriedBy(rank)) {
        blocks[static_cast<std::size_t>(hopsOf(rails.homeOf(block)))].push_back(block);
    }
    return blocks;
}

/// Every block goes from its home straight to its helper on each other node.
void exchangeToHelpers(PlanBuilder& plan, const BlockRails& rails, const Held& held) {
    const int home = rails.homeOf(plan.me());
    for (int hops = 1; hops < rails.nodes(); ++hops) {
        plan.send(rails.helper(home + hops, plan.me()), of(held, plan.me()));
    }
    const auto carried = byHops(rails, plan.me(), [&](int from) { return rails.hops(from, home); });
    for (std::size_t hops = 1; hops < carried.size(); ++hops) {  // the nearest home before mine
        for (const Rank block : carried[hops]) plan.recv(block, of(held, block));
    }
}

/// Every block travels from node to node, home first. Sender and receiver go by (hop, block), so
/// their messages meet; with equal nodes this is the ring on each rail.
void ringToHelpers(PlanBuilder& plan, const BlockRails& rails, const Held& held) {
    const int here = rails.homeOf(plan.me());
    const auto carried = byHops(rails, plan.me(), [&](int home) { return rails.hops(home, here); });
    for (std::size_t hop = 0; hop + 1 < carried.size(); ++hop) {
        for (const Rank block : carried[hop]) {
            plan.send(rails.helper(here + 1, block), of(held, block));
        }
        for (const Rank block : carried[hop + 1]) {
            plan.recv(rails.helper(here - 1, block), of(held, block));
        }
    }
}

/// Every node's sum of a block goes straight to the block's home.
void exchangeToHome(PlanBuilder& plan, const BlockRails& rails, const Held& held) {
    const int home = rails.homeOf(plan.me());
    const auto carried = byHops(rails, plan.me(), [&](int to) { return rails.hops(home, to); });
    for (std::size_t hops = 1; hops < carried.size(); ++hops) {
        for (const Rank block : carried[hops]) plan.send(block, of(held, block));
    }
    const Slice& mine = of(held, plan.me());
    std::vector<Slice> terms(static_cast<std::size_t>(rails.nodes()), mine);
    for (int hops = 1; hops < rails.nodes(); ++hops) {
        const int node = (home - hops + rails.nodes()) % rails.nodes();
        Slice& term = terms[static_cast<std::size_t>(node)];
        term = scratchLike(plan, mine);
        plan.recv(rails.helper(node, plan.me()), term);
    }
    plan.reduce(mine, terms, Completes::kYes);
}

/// The sum of a block grows from node to node and ends at its home.
void ringToHome(PlanBuilder& plan, const BlockRails& rails, const Held& held) {
    const int here = rails.homeOf(plan.me());
    const auto carried =
        byHops(rails, plan.me(), [&](int home) { return rails.hops(home + 1, here); });
    for (std::size_t hop = 0; hop + 1 < carried.size(); ++hop) {
        for (const Rank block : carried[hop]) {
            plan.send(rails.helper(here + 1, block), of(held, block));
        }
        for (const Rank block : carried[hop + 1]) {
            const Slice arrived = scratchLike(plan, of(held, block));
            plan.recv(rails.helper(here - 1, block), arrived);
            plan.reduce(of(held, block), {arrived, of(held, block)},
                        hop + 2 == carried.size() ? Completes::kYes : Completes::kNo);
        }
    }
}

using AlongRails = void (*)(PlanBuilder&, const BlockRails&, const Held&);

void reduceScatter(PlanBuilder& plan, const Scene& scene, AlongRails toHome) {
    const BlockRails rails(scene.layout, scene.nodeOf);
    NodeLevel node(plan, scene.node, blockNames(plan, scene.ranks()));
    const auto carried =
        byHops(rails, plan.me(), [&](int home) { return rails.hops(home, scene.myNode); });
    Held sums(scene.nodeOf.size());
    node.offerInput(chunksOf(plan, rails.carriedBeside(plan.me())));
    node.waitForAll();
    // What leaves first is summed first: the next node's blocks go the longest way round.
    for (int hops = 1; hops <= rails.nodes(); ++hops) {
        for (const Rank rank : carried[static_cast<std::size_t>(hops % rails.nodes())]) {
            const Chunks chunks = block(plan, rank);
            Slice& sum = sums[static_cast<std::size_t>(rank)];
            sum = rank == plan.me() ? outputOfMyBlock(plan)(chunks)
                                    : scratchLike(plan, plan.input()(chunks));
            node.sumInputs(sum, chunks, Completes::kNo);
        }
    }
    node.signalAll();  // their inputs are read
    toHome(plan, rails, sums);
    node.waitForAll();
}

void allGather(PlanBuilder& plan, const Scene& scene, AlongRails toHelpers) {
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
    toHelpers(plan, rails, held);
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
    // In the order in which they come.
    for (const std::vector<Rank>& ranks :
         byHops(rails, plan.me(), [&](int home) { return rails.hops(home, scene.myNode); })) {
        for (const Rank rank : ranks) node.push(block(plan, rank), of(held, rank));
    }
    node.meet();
}

}  // namespace

void twoLevelExchangeReduceScatter(PlanBuilder& plan, const Scene& scene) {
    reduceScatter(plan, scene, exchangeToHome);
}

void twoLevelRingReduceScatter(PlanBuilder& plan, const Scene& scene) {
    reduceScatter(plan, scene, ringToHome);
}

void twoLevelExchangeAllGather(PlanBuilder& plan, const Scene& scene) {
    allGather(plan, scene, exchangeToHelpers);
}

void twoLevelRingAllGather(PlanBuilder& plan, const Scene& scene) {
    allGather(plan, scene, ringToHelpers);
}

}  // namespace isthmus
