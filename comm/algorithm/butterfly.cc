#include "comm/algorithm/butterfly.hpp"

#include <algorithm>
#include <functional>

#include "comm/algorithm/chunks.hpp"

namespace isthmus {
namespace {

/// One phase: positions that differ in the digit `stride` wide, of which there are `radix`.
struct Phase {
    int stride = 1;
    int radix = 1;

    int digitOf(int position) const { return position / stride % radix; }
    int withDigit(int position, int digit) const {
        return position + (digit - digitOf(position)) * stride;
    }
    /// The digits up to this one.
    int lowerPart(int position) const { return position % (stride * radix); }
};

std::vector<Phase> phasesOf(const Group& group, const std::vector<int>& radices) {
    std::vector<Phase> phases;
    int stride = 1;
    for (const int radix : radices) {
        phases.push_back({stride, radix});
        stride *= radix;
    }
    ISTHMUS_ASSERT(stride == group.size());
    return phases;
}

/// Pieces whose position has the digits of `position` up to that of `phase`, ascending.
Chunks piecesLike(const Pieces& pieces, const Phase& phase, int position) {
    Chunks chunks;
    const auto step =
        static_cast<std::size_t>(phase.stride) * static_cast<std::size_t>(phase.radix);
    for (auto like = static_cast<std::size_t>(phase.lowerPart(position)); like < pieces.size();
         like += step) {
        chunks.insert(chunks.end(), pieces[like].begin(), pieces[like].end());
    }
    std::sort(chunks.begin(), chunks.end());
    return chunks;
}

/// Position p takes the piece whose number is p with its digits in reverse order: what is sent in
/// one phase is then one run.
Pieces inReversedOrder(const Pieces& pieces, const std::vector<Phase>& phases) {
    Pieces reversed;
    for (int position = 0; position < static_cast<int>(pieces.size()); ++position) {
        int mirrored = 0;
        for (const Phase& phase : phases)
            mirrored = mirrored * phase.radix + phase.digitOf(position);
        reversed.push_back(pieces[static_cast<std::size_t>(mirrored)]);
    }
    return reversed;
}

/// Blocks on their way: which I hold, and where.
class DigitTravellers {
public:
    DigitTravellers(PlanBuilder& plan, const Group& group)
        : plan_(plan), group_(group), at_(static_cast<std::size_t>(group.size())) {
        std::vector<Slice> inputs;
        std::vector<Slice> kept;
        for (int to = 0; to < group.size(); ++to) {
            if (to == group.me()) continue;
            inputs.push_back(plan.input()(block(plan, group[to])));
            kept.push_back(scratchLike(plan, inputs.back()));
            of(group.me(), to) = kept.back();
        }
        plan.copy(joined(kept), joined(inputs));
    }

    void pass(const Phase& phase) {
        const int me = group_.me();
        for (int hops = 1; hops < phase.radix; ++hops) {
            const int to = phase.withDigit(me, (phase.digitOf(me) + hops) % phase.radix);
            const int from =
                phase.withDigit(me, (phase.digitOf(me) + phase.radix - hops) % phase.radix);
            std::vector<Slice> leaving;
            forBlocks(phase, me, to, [&](int source, int destination) {
                leaving.push_back(of(source, destination));
            });
            std::vector<Slice> coming;
            forBlocks(phase, from, me, [&](int source, int destination) {
                of(source, destination) = landing(source, destination);
                coming.push_back(of(source, destination));
            });
            plan_.send(group_[to], joined(leaving));
            plan_.recv(group_[from], joined(coming));
        }
    }

private:
    /// Blocks that `from` passes to `to`: their sources have come as far as `from` by the digits
    /// below, and their destinations have those of `to`.
    void forBlocks(const Phase& phase, int from, int to,
                   const std::function<void(int source, int destination)>& use) const {
        const int first = from - from % phase.stride;
        for (int source = first; source < first + phase.stride; ++source) {
            for (int destination = phase.lowerPart(to); destination < group_.size();
                 destination += phase.stride * phase.radix) {
                use(source, destination);
            }
        }
    }

    Slice landing(int source, int destination) {
        if (destination == group_.me()) return plan_.output()(block(plan_, group_[source]));
        std::vector<ChunkName> names;
        const int pair = group_[source] * plan_.ranks() + group_[destination];
        for (int chunk = 0; chunk < plan_.chunksPerBlock(); ++chunk) names.push_back({pair, chunk});
        return plan_.grabScratch(names);
    }

    Slice& of(int source, int destination) {
        auto& from = at_[static_cast<std::size_t>(source)];
        from.resize(static_cast<std::size_t>(group_.size()));
        return from[static_cast<std::size_t>(destination)];
    }

    PlanBuilder& plan_;
    const Group& group_;
    std::vector<std::vector<Slice>> at_;  // by source and destination
};

}  // namespace

std::vector<int> radicesOf(int size) {
    std::vector<int> radices;
    for (int radix = 4; size > 1; radix = radix == 4 ? 2 : radix == 2 ? 3 : radix + 2) {
        for (; size % radix == 0; size /= radix) radices.push_back(radix);
    }
    return radices;
}

void butterflyReduceScatter(PlanBuilder& plan, const Group& group, const std::vector<int>& radices,
                            const Pieces& pieces, const Place& from, const Place& to,
                            Completes completes) {
    const int me = group.me();
    const std::vector<Phase> phases = phasesOf(group, radices);
    Place have = from;
    for (const Phase& phase : phases) {
        const bool isLast = phase.stride * phase.radix == group.size();
        const Chunks kept = piecesLike(pieces, phase, me);
        std::vector<Slice> terms(static_cast<std::size_t>(phase.radix), have(kept));
        for (int hops = 1; hops < phase.radix; ++hops) {
            const int ahead = (phase.digitOf(me) + hops) % phase.radix;
            const int behind = (phase.digitOf(me) + phase.radix - hops) % phase.radix;
            const int receiver = phase.withDigit(me, ahead);
            Slice& term = terms[static_cast<std::size_t>(behind)];
            term = scratchLike(plan, term);
            plan.send(group[receiver], have(piecesLike(pieces, phase, receiver)));
            plan.recv(group[phase.withDigit(me, behind)], term);
        }
        const Slice sum = isLast ? to(kept) : terms[phase.digitOf(me) == 0 ? 1 : 0];
        plan.reduce(sum, terms, isLast ? completes : Completes::kNo);
        have = lyingAt(kept, sum);
    }
}

void butterflyAllGather(PlanBuilder& plan, const Group& group, const std::vector<int>& radices,
                        const Pieces& pieces, const Place& at) {
    const int me = group.me();
    std::vector<Phase> phases = phasesOf(group, radices);
    std::reverse(phases.begin(), phases.end());
    for (const Phase& phase : phases) {
        const Slice have = at(piecesLike(pieces, phase, me));
        for (int hops = 1; hops < phase.radix; ++hops) {
            const int ahead = (phase.digitOf(me) + hops) % phase.radix;
            const int behind = (phase.digitOf(me) + phase.radix - hops) % phase.radix;
            const int sender = phase.withDigit(me, behind);
            plan.send(group[phase.withDigit(me, ahead)], have);
            plan.recv(group[sender], at(piecesLike(pieces, phase, sender)));
        }
    }
}

void butterflyAllReduce(PlanBuilder& plan, const Group& group, const std::vector<int>& radices,
                        const Pieces& pieces, const Place& from, const Place& to,
                        Completes completes) {
    const Pieces taken = inReversedOrder(pieces, phasesOf(group, radices));
    butterflyReduceScatter(plan, group, radices, taken, from, to, completes);
    butterflyAllGather(plan, group, radices, taken, to);
}

void butterflyAllToAll(PlanBuilder& plan, const Group& group, const std::vector<int>& radices) {
    DigitTravellers travellers(plan, group);
    for (const Phase& phase : phasesOf(group, radices)) travellers.pass(phase);
}

}  // namespace isthmus
