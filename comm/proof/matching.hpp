#pragma once

#include <utility>
#include <vector>

#include <isthmus/status.hpp>

#include "comm/plan/plan.hpp"

namespace isthmus {

/// Which step meets which across the ranks. Steps of all ranks are numbered in one row: step i of
/// rank r is firstOf[r] + i.
struct Matching {
    std::vector<int> firstOf;                  ///< ranks + 1 entries
    std::vector<Rank> rankOf;                  ///< of each step
    std::vector<const Step*> steps;            ///< of each step; points into the plans given
    std::vector<int> partner;                  ///< send: its recv; recv: its send; else -1
    std::vector<std::vector<int>> raisedBy;    ///< wait: the signals it waits for
    std::vector<std::vector<int>> lanes;       ///< sends of one lane, and recvs of one, in order
    std::vector<std::pair<int, int>> signals;  ///< neighbours among the signals of one pair

    int size() const { return static_cast<int>(steps.size()); }
};

/// The n-th send from a to b on a channel meets the n-th recv of b from a on it; signals and waits
/// alike. kMismatch says where counts or lengths differ. The plans must outlive the Matching.
Result<Matching> match(const std::vector<Plan>& plans);

}  // namespace isthmus
