#include "comm/algorithm/summing.hpp"

#include <algorithm>
#include <numeric>

#include "comm/algorithm/chunks.hpp"
#include "comm/algorithm/node_level.hpp"
#include "comm/algorithm/sharing.hpp"
#include "comm/algorithm/water_fill.hpp"

namespace isthmus {
namespace {

Slice scratchFor(PlanBuilder& plan, const Chunks& chunks) {
    std::vector<ChunkName> names;
    for (const int chunk : chunks) names.push_back({0, chunk});
    return plan.grabScratch(names);
}

/// What contributors hold at `from` is added up by the owners of its pieces, piece p by position p
/// in the order of positions; contributors end with all of it at `to`. My own piece is left at
/// `to` too when `keeps`.
struct Summing {
    PlanBuilder& plan;
    const Group& group;
    const std::vector<bool>& contributes;  // by position
    const Pieces& pieces;

    const Chunks& pieceOf(int position) const {
        return pieces[static_cast<std::size_t>(group.wrap(position))];
    }
    bool contributor(int position) const {
        return contributes[static_cast<std::size_t>(group.wrap(position))];
    }

    /// The sum of my piece, at `result`.
    void gatherSum(const Place& from, const Slice& result) const {
        const int me = group.me();
        std::vector<Slice> terms(static_cast<std::size_t>(group.size()));
        if (contributor(me)) terms[static_cast<std::size_t>(me)] = from(pieceOf(me));
        for (int hops = 1; hops < group.size(); ++hops) {
            if (contributor(me)) plan.send(group[me + hops], from(pieceOf(me + hops)));
            if (!contributor(me - hops)) continue;
            Slice& term = terms[static_cast<std::size_t>(group.wrap(me - hops))];
            term = scratchFor(plan, pieceOf(me));
            plan.recv(group[me - hops], term);
        }
        std::erase_if(terms, [](const Slice& term) { return term.empty(); });
        if (!terms.empty()) combine(plan, result, terms, Completes::kYes);
    }

    void giveBack(const Slice& result, const Place& to) const {
        const int me = group.me();
        for (int hops = 1; hops < group.size(); ++hops) {
            if (contributor(me + hops)) plan.send(group[me + hops], result);
            if (contributor(me)) plan.recv(group[me - hops], to(pieceOf(me - hops)));
        }
    }
};

bool holdsData(const Layout& layout, Rank rank) {
    return !layout.onlySums(rank);
}

std::vector<Rank> withData(const Layout& layout, std::span<const Rank> ranks) {
    std::vector<Rank> holders;
    for (const Rank rank : ranks) {
        if (holdsData(layout, rank)) holders.push_back(rank);
    }
    return holders;
}

/// Chunks of the shards that each rank of my node serves.
std::vector<Chunks> sharesOf(const Shards& shards, const Scene& scene, int parts) {
    std::vector<Chunks> shares;
    for (const Rank rank : scene.node.ranks()) {
        const std::vector<int> served = shards.servedBy(scene.myNode, rank);
        shares.push_back(run(served.front() * parts, static_cast<int>(served.size()) * parts));
    }
    return shares;
}

/// The node part around `rails`, which sums what lies at its first place over all nodes and leaves
/// it at its second.
class DataNode {
public:
    DataNode(PlanBuilder& plan, const Scene& scene, std::vector<Chunks> shares)
        : plan_(plan),
          holders_(withData(scene.layout, scene.node.ranks())),
          isHolder_(holdsData(scene.layout, plan.me())),
          shares_(std::move(shares)),
          node_(plan, scene.node, blockNames(plan, 1)) {}

    template <typename Rails>
    void sum(const Rails& rails) {
        open();
        if (holders_.size() == 1) {  // nothing to add here
            rails([&](const Chunks& chunks) { return node_.inputOf(holders_.front(), chunks); },
                  node_.heldPlace());
        } else {
            addUp(Completes::kNo);
            rails(node_.heldPlace(), node_.heldPlace());
        }
        spread();
    }

    /// Where no other node has data.
    void sumAlone() {
        open();
        addUp(Completes::kYes);
        spread();
    }

private:
    const Chunks& mine() const { return shares_[static_cast<std::size_t>(node_.group().me())]; }

    void open() {
        if (isHolder_) {
            node_.offerInput(allBut(mine()));
        } else {
            node_.signalAll();
        }
        node_.waitForAll();
    }

    void addUp(Completes completes) {
        std::vector<Slice> terms;
        for (const Rank rank : holders_) terms.push_back(node_.inputOf(rank, mine()));
        combine(plan_, node_.held(mine()), terms, completes);
    }

    void spread() {
        if (!node_.isStaged()) return;  // alone: the result is in its output
        if (isHolder_) return node_.spread(shares_);
        node_.meet();
        node_.meet();
    }

    Chunks allBut(const Chunks& left) const {
        Chunks others;
        for (const Chunks& share : shares_) {
            if (&share != &left) others.insert(others.end(), share.begin(), share.end());
        }
        return others;
    }

    PlanBuilder& plan_;
    std::vector<Rank> holders_;
    bool isHolder_;
    std::vector<Chunks> shares_;
    NodeLevel node_;
};

/// Piece `part` of every part of one shard.
Pieces piecesOf(int shard, int parts) {
    Pieces pieces;
    for (int part = 0; part < parts; ++part) pieces.push_back({shard * parts + part});
    return pieces;
}

}  // namespace

std::vector<bool> nodesWithData(const Layout& layout) {
    std::vector<bool> have;
    for (const auto& node : layout.nodes) have.push_back(!withData(layout, node).empty());
    return have;
}

Chunking piecesOfSumming(const Layout& layout) {
    std::vector<bool> have;
    for (Rank rank = 0; rank < layout.ranks(); ++rank) have.push_back(holdsData(layout, rank));
    const std::vector<int> weights = equalCards(have);
    const int all = std::accumulate(weights.begin(), weights.end(), 0);
    Chunking chunking{.cuts = {{0, 1}}};
    int before = 0;
    for (const int weight : weights) chunking.cuts.push_back({before += weight, all});
    chunking.cuts.back() = {1, 1};
    return chunking;
}

Chunking shardsOfSumming(const Layout& layout) {
    const bool isKnown = !layout.shares.empty();
    return Shards(layout).chunking(isKnown ? layout.shares : equalCards(nodesWithData(layout)));
}

void summingAllReduce(PlanBuilder& plan, const Scene& scene) {
    std::vector<Rank> all(static_cast<std::size_t>(scene.ranks()));
    std::iota(all.begin(), all.end(), 0);
    std::vector<bool> have;
    for (const Rank rank : all) have.push_back(holdsData(scene.layout, rank));
    if (std::count(have.begin(), have.end(), true) == 1) {  // its own is the sum
        const Chunks whole = allBlocks(plan, 1);
        const bool isHolder = holdsData(scene.layout, plan.me());
        if (isHolder) plan.copy(plan.output()(whole), plan.input()(whole), Completes::kYes);
        return;
    }
    const Group group(all, plan.me());
    const Pieces pieces = singles(scene.ranks());
    const Summing summing{plan, group, have, pieces};
    const Chunks& mine = pieces[static_cast<std::size_t>(plan.me())];
    const bool isHolder = holdsData(scene.layout, plan.me());
    const Slice result = isHolder ? plan.output()(mine) : scratchFor(plan, mine);
    summing.gatherSum(plan.input(), result);
    summing.giveBack(result, plan.output());
}

void twoLevelSummingAllReduce(PlanBuilder& plan, const Scene& scene) {
    const Shards shards(scene.layout);
    const int parts = plan.chunksPerBlock() / shards.count();
    const std::vector<bool> have = nodesWithData(scene.layout);
    const bool isDataNode = have[static_cast<std::size_t>(scene.myNode)];
    if (std::count(have.begin(), have.end(), true) == 1) {  // its own is the sum
        if (!isDataNode) return;
        return DataNode(plan, scene, sharesOf(shards, scene, parts)).sumAlone();
    }
    const auto rails = [&](const Place& from, const Place& to) {
        for (const int shard : shards.servedBy(scene.myNode, plan.me())) {
            const Group rail(shards.rail(shard, 0), plan.me());
            const Pieces pieces = piecesOf(shard, parts);
            const Summing summing{plan, rail, have, pieces};
            const Chunks& mine = pieces[static_cast<std::size_t>(scene.myNode)];
            const Slice result = isDataNode ? to(mine) : scratchFor(plan, mine);
            summing.gatherSum(from, result);
            summing.giveBack(result, to);
        }
    };
    if (!isDataNode) return rails({}, {});
    DataNode(plan, scene, sharesOf(shards, scene, parts)).sum(rails);
}

}  // namespace isthmus
