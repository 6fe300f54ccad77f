#pragma once

#include <vector>

#include "comm/algorithm/group.hpp"
#include "comm/plan/builder.hpp"

namespace isthmus {

/// A position's neighbours in a tree over positions 0 to size - 1.
struct TreePlace {
    int parent = 0;  ///< negative at the root: position 0, where a tree does not say otherwise
    std::vector<int> children;
};
using TreeShape = TreePlace (*)(int position, int size);

/// 0 - 1 - 2 - ...: every position forwards once, so segments of a large payload flow at full rate.
TreePlace chain(int position, int size);

/// ceil(log2 size) rounds. Source: binomial trees, Thakur, Rabenseifner and Gropp, 2005,
/// doi 10.1177/1094342005051521.
TreePlace binomial(int position, int size);

/// The root sends `from`; everybody else ends with the chunks at `to`. The root copies nothing.
void treeBroadcast(PlanBuilder& plan, const Group& group, TreeShape shape, const Slice& from,
                   const Slice& to);

/// Adds everybody's `own` into `result` of the root (what others give is not looked at).
void treeReduce(PlanBuilder& plan, const Group& group, TreeShape shape, const Slice& own,
                const Slice& result, Completes completes);

}  // namespace isthmus
