#include "comm/proof/prove.hpp"

#include <algorithm>

#include "comm/plan/builder.hpp"
#include "comm/plan/print.hpp"
#include "comm/proof/walk.hpp"

namespace isthmus {
namespace {

class Prover {
public:
    Prover(Collective collective, const std::vector<Plan>& plans, std::span<const int> nodeOfRank)
        : collective_(collective), plans_(plans), nodeOfRank_(nodeOfRank) {}

    Status run(const std::vector<std::vector<bool>>& models, bool lanesInOrder) {
        ISTHMUS_TRY(checkHeads());
        Result<Matching> matching = match(plans_);
        if (!matching.ok()) return matching.status();
        const HappensBefore before(*matching, static_cast<int>(plans_.size()));
        if (!before.isFreeOfDeadlock()) return deadlock(*matching, before.stepOnCircle());
        if (lanesInOrder && !before.isFreeOfDeadlockInLaneOrder()) {
            return Status::mismatch("deadlock with one credit for each lane");
        }
        ISTHMUS_TRY(checkSignals(*matching, before));
        ISTHMUS_TRY(checkClosure(*matching, before));
        for (const std::vector<bool>& isInPlace : models) {
            const bool isAny =
                std::find(isInPlace.begin(), isInPlace.end(), true) != isInPlace.end();
            const Status status = Walk(plans_, *matching, before, isInPlace).run();
            if (!status.ok()) return isAny ? status.within("in place") : status;
        }
        return {};
    }

private:
    Status checkHeads() const {
        if (plans_.empty()) return Status::invalidArgument("no plan");
        const Plan& first = plans_.front();
        for (std::size_t rank = 0; rank < plans_.size(); ++rank) {
            const Plan& plan = plans_[rank];
            const bool agrees = plan.me == static_cast<Rank>(rank) &&
                                plan.ranks == static_cast<int>(plans_.size()) &&
                                plan.collective == collective_ && plan.root == first.root &&
                                plan.chunking == first.chunking && plan.summing == first.summing;
            if (!agrees) {
                return Status::mismatch("plan of rank " + std::to_string(rank) +
                                        " is of another call");
            }
            ISTHMUS_TRY(checkPlan(plan, nodeOfRank_));
        }
        return checkShared();
    }

    /// All-to-all blocks are named by source, so the names differ; where blocks differ in size the
    /// owner of a slot says where it is.
    bool areAlike(const std::vector<ChunkName>& a, const std::vector<ChunkName>& b) const {
        if (collective_ != Collective::kAllToAll) return a == b;
        return std::equal(
            a.begin(), a.end(), b.begin(), b.end(),
            [](const ChunkName& x, const ChunkName& y) { return x.chunk == y.chunk; });
    }

    /// Slot i here is slot i at every peer of the node that maps it.
    Status checkShared() const {
        for (std::size_t a = 0; a < plans_.size(); ++a) {
            const auto peer = std::find(nodeOfRank_.begin(), nodeOfRank_.end(), nodeOfRank_[a]);
            const auto b = static_cast<std::size_t>(peer - nodeOfRank_.begin());
            if (!areAlike(plans_[a].shared, plans_[b].shared)) {
                return Status::mismatch("ranks " + std::to_string(b) + " and " + std::to_string(a) +
                                        " grabbed different shared slots");
            }
        }
        return {};
    }

    static Status deadlock(const Matching& matching, int step) {
        const auto index = static_cast<std::size_t>(step);
        return Status::mismatch("deadlock at or behind rank " +
                                std::to_string(matching.rankOf[index]) + " " +
                                textOf(*matching.steps[index]));
    }

    /// A flag is a counter: a later signal must not pass for an earlier one.
    static Status checkSignals(const Matching& matching, const HappensBefore& before) {
        for (const auto& [earlier, later] : matching.signals) {
            if (earlier != later && before.isDoneBefore(earlier, postedOf(later))) continue;
            const auto index = static_cast<std::size_t>(later);
            return Status::mismatch(
                "signals of rank " + std::to_string(matching.rankOf[index]) +
                " to one peer are not ordered: " + textOf(*matching.steps[index]));
        }
        return {};
    }

    Status checkClosure(const Matching& matching, const HappensBefore& before) const {
        for (int step = 0; step < matching.size(); ++step) {
            const Step& act = *matching.steps[static_cast<std::size_t>(step)];
            ISTHMUS_TRY(checkClosure(step, act, act.target, matching, before));
            for (const Slice& source : act.sources) {
                ISTHMUS_TRY(checkClosure(step, act, source, matching, before));
            }
        }
        return collective_ == Collective::kBarrier ? checkBarrier(before) : Status();
    }

    Status checkClosure(int step, const Step& act, const Slice& slice, const Matching& matching,
                        const HappensBefore& before) const {
        const auto rank = static_cast<std::size_t>(matching.rankOf[static_cast<std::size_t>(step)]);
        for (const Location& location : slice) {
            if (location.rank == static_cast<Rank>(rank)) continue;
            const bool outlives =
                location.buffer == Buffer::kShared && plans_[rank].sharedOutlivesCall;
            const bool isAfterEntry = before.hasStartedBefore(location.rank, postedOf(step));
            if (isAfterEntry && (outlives || before.isDoneBeforeEnd(step, location.rank))) continue;
            return Status::mismatch("rank " + std::to_string(location.rank) +
                                    (isAfterEntry ? " may have left" : " may not have entered") +
                                    " at rank " + std::to_string(rank) + " " + textOf(act));
        }
        return {};
    }

    Status checkBarrier(const HappensBefore& before) const {
        const int ranks = static_cast<int>(plans_.size());
        for (Rank leaving = 0; leaving < ranks; ++leaving) {
            for (Rank entering = 0; entering < ranks; ++entering) {
                if (before.hasStartedBeforeEnd(entering, leaving)) continue;
                return Status::mismatch("rank " + std::to_string(leaving) +
                                        " may pass before rank " + std::to_string(entering) +
                                        " has come");
            }
        }
        return {};
    }

    const Collective collective_;
    const std::vector<Plan>& plans_;
    const std::span<const int> nodeOfRank_;
};

Proof proofOf(const std::vector<Plan>& plans, const Status& status) {
    Proof proof;
    proof.holds = status.ok();
    proof.what = status.what();
    for (const Plan& plan : plans) {
        proof.steps += static_cast<int>(plan.steps.size());
        for (const Step& step : plan.steps) proof.edges += static_cast<int>(step.after.size());
    }
    return proof;
}

}  // namespace

std::vector<bool> mayRunInPlace(const std::vector<Plan>& plans) {
    std::vector<bool> may;
    for (const Plan& plan : plans) may.push_back(plan.inPlaceSafe);
    return may;
}

Proof prove(Collective collective, const std::vector<Plan>& plans, std::span<const int> nodeOfRank,
            const ProveOptions& options) {
    std::vector<bool> isInPlace(plans.size(), false);
    for (const Rank rank : options.inPlaceRanks) isInPlace[static_cast<std::size_t>(rank)] = true;
    return proofOf(plans,
                   Prover(collective, plans, nodeOfRank).run({isInPlace}, options.lanesInOrder));
}

Proof proveBothModels(Collective collective, const std::vector<Plan>& plans,
                      std::span<const int> nodeOfRank, bool lanesInOrder) {
    std::vector<std::vector<bool>> models = {std::vector<bool>(plans.size(), false)};
    if (std::vector<bool> may = mayRunInPlace(plans); may != models.front()) {
        models.push_back(std::move(may));
    }
    return proofOf(plans, Prover(collective, plans, nodeOfRank).run(models, lanesInOrder));
}

}  // namespace isthmus
