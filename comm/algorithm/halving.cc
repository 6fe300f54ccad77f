#include "comm/algorithm/halving.hpp"

#include <algorithm>
#include <bit>

#include "comm/algorithm/chunks.hpp"

namespace isthmus {
namespace {

/// The positions that halve and double, numbered 0 to count() - 1, and who folds into them.
class Workers {
public:
    explicit Workers(int size) : count_(halvingWorkers(size)), folded_(size - count_) {}

    int count() const { return count_; }
    bool isFolded(int position) const { return position < 2 * folded_ && position % 2 == 1; }
    int workerAt(int position) const {
        return position < 2 * folded_ ? position / 2 : position - folded_;
    }
    int positionOf(int worker) const { return worker + std::min(worker, folded_); }
    bool hasFolded(int worker) const { return worker < folded_; }

private:
    int count_;
    int folded_;
};

/// Pieces of all workers whose number is `worker` modulo `modulus`, ascending.
Chunks piecesLike(const Pieces& pieces, int worker, int modulus) {
    Chunks chunks;
    for (auto like = static_cast<std::size_t>(worker % modulus); like < pieces.size();
         like += static_cast<std::size_t>(modulus)) {
        chunks.insert(chunks.end(), pieces[like].begin(), pieces[like].end());
    }
    std::sort(chunks.begin(), chunks.end());
    return chunks;
}

/// Where a worker finds the sum of its own contribution and that of the rank folded into it.
Place foldIn(PlanBuilder& plan, const Group& group, const Workers& workers, const Chunks& all,
             const Place& from) {
    if (!workers.hasFolded(workers.workerAt(group.me()))) return from;
    const Slice own = from(all);
    const Slice arrived = scratchLike(plan, own);
    plan.recv(group.next(), arrived);
    plan.reduce(arrived, {own, arrived}, Completes::kNo);
    return lyingAt(all, arrived);
}

/// Worker w ends with the sums of pieces[w] at `to`.
void halve(PlanBuilder& plan, const Group& group, const Workers& workers, const Pieces& pieces,
           Place have, const Place& to, Completes completes) {
    const int me = workers.workerAt(group.me());
    for (int bit = 1; bit < workers.count(); bit *= 2) {
        const int partner = me ^ bit;
        const Rank peer = group[workers.positionOf(partner)];
        const bool isLast = 2 * bit == workers.count();
        const Chunks kept = piecesLike(pieces, me, 2 * bit);
        const Slice own = have(kept);
        const Slice arrived = scratchLike(plan, own);
        plan.send(peer, have(piecesLike(pieces, partner, 2 * bit)));
        plan.recv(peer, arrived);
        const bool isFirst = me < partner;
        plan.reduce(isLast ? to(kept) : arrived, {isFirst ? own : arrived, isFirst ? arrived : own},
                    isLast ? completes : Completes::kNo);
        have = lyingAt(kept, arrived);
    }
}

/// Expects pieces[w] at worker w; afterwards all workers have all pieces.
void gatherByDoubling(PlanBuilder& plan, const Group& group, const Workers& workers,
                      const Pieces& pieces, const Place& at) {
    const int me = workers.workerAt(group.me());
    for (int bit = workers.count() / 2; bit > 0; bit /= 2) {
        const int partner = me ^ bit;
        const Rank peer = group[workers.positionOf(partner)];
        plan.send(peer, at(piecesLike(pieces, me, 2 * bit)));
        plan.recv(peer, at(piecesLike(pieces, partner, 2 * bit)));
    }
}

/// Worker w takes the piece whose number is w with its bits in reverse order: what is sent in one
/// round is then one run.
Pieces inReversedOrder(const Pieces& pieces) {
    Pieces reversed(pieces.size());
    for (std::size_t worker = 0; worker < pieces.size(); ++worker) {
        std::size_t mirrored = 0;
        for (std::size_t bit = 1; bit < pieces.size(); bit *= 2) {
            mirrored = 2 * mirrored + ((worker & bit) != 0 ? 1 : 0);
        }
        reversed[worker] = pieces[mirrored];
    }
    return reversed;
}

}  // namespace

int halvingWorkers(int size) {
    return static_cast<int>(std::bit_floor(static_cast<unsigned>(size)));
}

void halvingAllReduce(PlanBuilder& plan, const Group& group, const Pieces& pieces,
                      const Place& from, const Place& to, Completes completes) {
    const Workers workers(group.size());
    const Chunks all = piecesLike(pieces, 0, 1);
    if (group.size() == 1) return plan.copy(to(all), from(all), completes);
    if (workers.isFolded(group.me())) {
        plan.send(group.previous(), from(all));
        plan.recv(group.previous(), to(all));
        return;
    }
    const Pieces taken = inReversedOrder(pieces);
    halve(plan, group, workers, taken, foldIn(plan, group, workers, all, from), to, completes);
    gatherByDoubling(plan, group, workers, taken, to);
    if (workers.hasFolded(workers.workerAt(group.me()))) plan.send(group.next(), to(all));
}

void halvingReduceScatter(PlanBuilder& plan, const Group& group, const Pieces& pieces,
                          const Place& from, const Place& to, Completes completes) {
    const Workers workers(group.size());
    const auto pieceAt = [&](int position) { return pieces[static_cast<std::size_t>(position)]; };
    const Chunks all = piecesLike(pieces, 0, 1);
    const Chunks mine = pieceAt(group.me());
    if (group.size() == 1) return plan.copy(to(mine), from(mine), completes);
    if (workers.isFolded(group.me())) {
        plan.send(group.previous(), from(all));
        plan.recv(group.previous(), to(mine));
        return;
    }
    Pieces served;
    for (int worker = 0; worker < workers.count(); ++worker) {
        const int position = workers.positionOf(worker);
        Chunks& both = served.emplace_back(pieceAt(position));
        if (!workers.hasFolded(worker)) continue;
        const Chunks folded = pieceAt(position + 1);
        both.insert(both.end(), folded.begin(), folded.end());
    }
    const int me = workers.workerAt(group.me());
    const bool isForTwo = workers.hasFolded(me);
    const Slice theirs = isForTwo ? scratchLike(plan, from(pieceAt(group.me() + 1))) : Slice{};
    halve(plan, group, workers, served, foldIn(plan, group, workers, all, from),
          lyingAt(served[static_cast<std::size_t>(me)], joined({to(mine), theirs})), completes);
    if (isForTwo) plan.send(group.next(), theirs);
}

}  // namespace isthmus
