#include "comm/algorithm/bidirectional_ring.hpp"

#include "comm/algorithm/chunks.hpp"

namespace isthmus {
namespace {

/// Pieces that move by `step` positions (1 or -1) a round, `hops` rounds in all.
struct Stream {
    int step;
    int hops;
};

/// The two of a group; of an even one the first has a round more.
Stream forwards(const Group& group) {
    return {1, group.size() / 2};
}

Stream backwards(const Group& group) {
    return {-1, (group.size() - 1) / 2};
}

const Chunks& pieceAt(const Group& group, const Pieces& pieces, int hops) {
    return pieces[static_cast<std::size_t>(group.wrap(group.me() + hops))];
}

/// Passes on a partial sum of each piece, my contribution added. What has grown on the way to my
/// own piece is returned: scratch, or nothing when the stream has no rounds.
class GrowingSums {
public:
    GrowingSums(PlanBuilder& plan, const Group& group, const Pieces& pieces, const Place& from,
                Stream stream)
        : plan_(plan), group_(group), pieces_(pieces), from_(from), stream_(stream) {
        if (stream.hops > 0) partial_ = from(pieceAt(group, pieces, stream.step * stream.hops));
    }

    void goOn(int round) {
        if (round >= stream_.hops) return;
        const int left = stream_.hops - 1 - round;
        const Slice added = from_(pieceAt(group_, pieces_, stream_.step * left));
        const Slice arrived = scratchLike(plan_, added);
        plan_.send(group_[group_.me() + stream_.step], partial_);
        plan_.recv(group_[group_.me() - stream_.step], arrived);
        if (left > 0) plan_.reduce(arrived, {arrived, added}, Completes::kNo);
        partial_ = arrived;
    }

    /// The sum for my piece, when all rounds are done.
    const Slice& arrived() const { return partial_; }

private:
    PlanBuilder& plan_;
    const Group& group_;
    const Pieces& pieces_;
    const Place& from_;
    Stream stream_;
    Slice partial_;
};

}  // namespace

void bidirectionalReduceScatter(PlanBuilder& plan, const Group& group, const Pieces& pieces,
                                const Place& from, const Place& to, Completes completes) {
    GrowingSums before(plan, group, pieces, from, forwards(group));
    GrowingSums behind(plan, group, pieces, from, backwards(group));
    for (int round = 0; round < forwards(group).hops; ++round) {
        before.goOn(round);
        behind.goOn(round);
    }
    const Chunks& mine = pieceAt(group, pieces, 0);
    std::vector<Slice> terms;
    if (!before.arrived().empty()) terms.push_back(before.arrived());
    terms.push_back(from(mine));
    if (!behind.arrived().empty()) terms.push_back(behind.arrived());
    combine(plan, to(mine), terms, completes);
}

void bidirectionalAllGather(PlanBuilder& plan, const Group& group, const Pieces& pieces,
                            const Slice& own, const Place& to) {
    for (int round = 0; round < forwards(group).hops; ++round) {
        for (const Stream& stream : {forwards(group), backwards(group)}) {
            if (round >= stream.hops) continue;
            const auto passed = [&](int hops) {
                return to(pieceAt(group, pieces, -stream.step * hops));
            };
            plan.send(group[group.me() + stream.step], round == 0 ? own : passed(round));
            plan.recv(group[group.me() - stream.step], passed(round + 1));
        }
    }
}

void bidirectionalAllReduce(PlanBuilder& plan, const Group& group, const Pieces& pieces,
                            const Place& from, const Place& to, Completes completes) {
    bidirectionalReduceScatter(plan, group, pieces, from, to, completes);
    bidirectionalAllGather(plan, group, pieces, to(pieceAt(group, pieces, 0)), to);
}

}  // namespace isthmus
