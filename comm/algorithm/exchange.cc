#include "comm/algorithm/exchange.hpp"

#include "comm/algorithm/chunks.hpp"

namespace isthmus {
namespace {

const Chunks& pieceOf(const Group& group, const Pieces& pieces, int position) {
    return pieces[static_cast<std::size_t>(group.wrap(position))];
}

}  // namespace

// Each rank begins with its next neighbour, so that no receiver is everybody's first.
void exchangeReduceScatter(PlanBuilder& plan, const Group& group, const Pieces& pieces,
                           const Place& from, const Place& to, Completes completes) {
    const int me = group.me();
    const Slice mine = from(pieceOf(group, pieces, me));
    std::vector<Slice> terms(static_cast<std::size_t>(group.size()), mine);
    for (int hops = 1; hops < group.size(); ++hops) {
        Slice& term = terms[static_cast<std::size_t>(group.wrap(me - hops))];
        term = scratchLike(plan, mine);
        plan.send(group[me + hops], from(pieceOf(group, pieces, me + hops)));
        plan.recv(group[me - hops], term);
    }
    combine(plan, to(pieceOf(group, pieces, me)), terms, completes);
}

void exchangeAllGather(PlanBuilder& plan, const Group& group, const Pieces& pieces,
                       const Slice& own, const Place& to) {
    const int me = group.me();
    for (int hops = 1; hops < group.size(); ++hops) {
        plan.send(group[me + hops], own);
        plan.recv(group[me - hops], to(pieceOf(group, pieces, me - hops)));
    }
}

void exchangeAllReduce(PlanBuilder& plan, const Group& group, const Pieces& pieces,
                       const Place& from, const Place& to, Completes completes) {
    exchangeReduceScatter(plan, group, pieces, from, to, completes);
    exchangeAllGather(plan, group, pieces, to(pieceOf(group, pieces, group.me())), to);
}

void exchangePieces(PlanBuilder& plan, const Group& group, const Pieces& pieces, const Place& from,
                    const Place& to, Outgoing outgoing) {
    const int me = group.me();
    std::vector<Slice> leaving;
    leaving.reserve(static_cast<std::size_t>(group.size()));
    for (int hops = 1; hops < group.size(); ++hops) {
        Slice piece = from(pieceOf(group, pieces, me + hops));
        if (outgoing == Outgoing::kThroughScratch) {
            const Slice kept = scratchLike(plan, piece);
            plan.copy(kept, piece);
            piece = kept;
        }
        leaving.push_back(std::move(piece));
    }
    for (int hops = 1; hops < group.size(); ++hops) {
        plan.send(group[me + hops], leaving[static_cast<std::size_t>(hops - 1)]);
        plan.recv(group[me - hops], to(pieceOf(group, pieces, me - hops)));
    }
}

}  // namespace isthmus
