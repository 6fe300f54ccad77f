#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "comm/proof/matching.hpp"

namespace isthmus {

/// Two events for each step: 2 i is `posted`, 2 i + 1 is `done`.
constexpr int postedOf(int step) {
    return 2 * step;
}
constexpr int doneOf(int step) {
    return 2 * step + 1;
}

/// What is over before what, in every run of the plans (plan_semantics section 4). Keeps one bit
/// for each (event, step): events * steps / 8 bytes, 5 MB for 4000 steps.
class HappensBefore {
public:
    explicit HappensBefore(const Matching& matching, int ranks);

    /// False when, with sends that may wait for their recvs, events wait for each other in a
    /// circle. Nothing else may be asked then.
    bool isFreeOfDeadlock() const { return isFreeOfDeadlock_; }

    /// The same when also each message of a lane waits for the one before (one credit, handed out
    /// in message order).
    bool isFreeOfDeadlockInLaneOrder() const;

    /// A step on the circle, to name it; -1 when there is none.
    int stepOnCircle() const { return stepOnCircle_; }

    /// Every event after all that must come before it.
    const std::vector<int>& order() const { return order_; }

    /// True when `step` is done before `event` in every run.
    bool isDoneBefore(int step, int event) const { return bit(event, ranks_ + step); }
    /// True when `rank` has started before `event` in every run.
    bool hasStartedBefore(Rank rank, int event) const { return bit(event, rank); }

    /// The same for the moment when `rank` is done with all its steps.
    bool isDoneBeforeEnd(int step, Rank rank) const { return endBit(rank, ranks_ + step); }
    bool hasStartedBeforeEnd(Rank started, Rank rank) const { return endBit(rank, started); }

private:
    using Edges = std::vector<std::pair<int, int>>;

    Edges eagerEdges() const;
    void addRendezvous(Edges& edges) const;
    std::vector<int> sorted(const Edges& edges) const;
    void fillRows();

    std::uint64_t* row(int event) {
        return rows_.data() + static_cast<std::size_t>(event) * words_;
    }
    void merge(int event, int earlier);

    bool bit(int event, int column) const {
        const auto at = static_cast<std::size_t>(event) * words_;
        return rows_[at + static_cast<std::size_t>(column) / 64] >> (column % 64) & 1U;
    }
    bool endBit(Rank rank, int column) const {
        const auto at = static_cast<std::size_t>(rank) * words_;
        return ends_[at + static_cast<std::size_t>(column) / 64] >> (column % 64) & 1U;
    }

    const Matching& matching_;
    int ranks_;
    std::size_t words_;
    bool isFreeOfDeadlock_ = false;
    int stepOnCircle_ = -1;
    std::vector<int> order_;
    std::vector<std::uint64_t> rows_;
    std::vector<std::uint64_t> ends_;
};

}  // namespace isthmus
