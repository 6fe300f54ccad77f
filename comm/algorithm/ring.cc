#include "comm/algorithm/ring.hpp"

#include "comm/algorithm/chunks.hpp"

namespace isthmus {
namespace {

const Chunks& pieceBehind(const Group& group, const Pieces& pieces, int hops) {
    return pieces[static_cast<std::size_t>(group.wrap(group.me() - hops))];
}

}  // namespace

void ringReduceScatter(PlanBuilder& plan, const Group& group, const Pieces& pieces,
                       const Place& from, const Place& to, Completes completes) {
    const int rounds = group.size() - 1;
    const Chunks& mine = pieceBehind(group, pieces, 0);
    if (rounds == 0) plan.copy(to(mine), from(mine), completes);
    Slice partial = from(pieceBehind(group, pieces, 1));
    for (int round = 0; round < rounds; ++round) {
        const bool isLast = round == rounds - 1;
        const Slice added = from(pieceBehind(group, pieces, round + 2));
        const Slice arrived = scratchLike(plan, added);
        plan.send(group.next(), partial);
        plan.recv(group.previous(), arrived);
        partial = isLast ? to(mine) : arrived;
        plan.reduce(partial, {arrived, added}, isLast ? completes : Completes::kNo);
    }
}

void ringAllGather(PlanBuilder& plan, const Group& group, const Pieces& pieces, const Slice& own,
                   const Place& to) {
    for (int round = 0; round < group.size() - 1; ++round) {
        plan.send(group.next(), round == 0 ? own : to(pieceBehind(group, pieces, round)));
        plan.recv(group.previous(), to(pieceBehind(group, pieces, round + 1)));
    }
}

void ringAllReduce(PlanBuilder& plan, const Group& group, const Pieces& pieces, const Place& from,
                   const Place& to, Completes completes) {
    ringReduceScatter(plan, group, pieces, from, to, completes);
    ringAllGather(plan, group, pieces, to(pieceBehind(group, pieces, 0)), to);
}

}  // namespace isthmus
