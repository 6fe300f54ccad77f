#pragma once

#include <vector>

#include "comm/algorithm/group.hpp"
#include "comm/plan/builder.hpp"

namespace isthmus {

/// A position's neighbours in a tree over positions 0 to size - 1 with its root at 0.
struct TreePlace {
    int parent = 0;
    std::vector<int> children;
};
using TreeShape = TreePlace (*)(int position, int size);

/// 0 - 1 - 2 - ...: every position forwards once, so segments of a large payload flow at full rate.
TreePlace chain(int position, int size);

/// ceil(log2 size) rounds. Source: binomial trees, Thakur, Rabenseifner and Gropp, 2005,
/// doi 10.1177/1094342005051521.
TreePlace binomial(int position, int size);

/// Position 0 sends `from`; everybody else ends with the chunks at `to`. Position 0 copies nothing.
void treeBroadcast(PlanBuilder& plan, const Group& group, TreeShape shape, const Slice& from,
                   const Slice& to);

/// Adds everybody's `own` into `result` of position 0 (others give an empty one).
void treeReduce(PlanBuilder& plan, const Group& group, TreeShape shape, const Slice& own,
                const Slice& result, Completes completes);

}  // namespace isthmus
