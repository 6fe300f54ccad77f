#pragma once

#include <string>
#include <vector>

#include "scheduler/prediction/prediction.hpp"
#include "scheduler/search/search.hpp"

namespace isthmus::scheduler {

/// Where a model is to be trained, and in which ways it may be split.
struct ModelQuestion {
    Cluster cluster;
    Model model;
    Job job;                   ///< its objective decides; `fixed` is not read
    std::string cut = "time";  ///< one of cutModel's methods
    Degrees wanted;            ///< 0 is free
    int keep = 1;              ///< how many degrees are answered, the best first
};

struct ModelAnswer {
    SearchAnswer search;
    std::vector<Prediction> predictions;  ///< of search.best
};

/// Searches for degrees, cut and placement. Degrees whose fullest stage needs more than the
/// smallest device has are left out.
///   cross_node_bytes  what search() answers
///   step_time         the fastest step. For all degrees first as if no message left a node, or
///                     every card were as fast as that; those that could still be faster than the
///                     best so far are placed with the fewest bytes and predicted
///   memory            the emptiest fullest stage, then the fewest bytes
/// The bound and `isOptimal` speak of bytes; with the two latter, at the degrees that are answered.
/// kUnsupported: nothing fits; the message has the largest part and the cheapest change of the
/// degrees that lack least.
Result<ModelAnswer> searchModel(const ModelQuestion& question, const Watch& watch);

/// Why these degrees are not possible; success when they are. kUnsupported: memory, with the
/// largest part and the cheapest change that would fit.
Status whyNot(const ModelQuestion& question, const Degrees& degrees);

}  // namespace isthmus::scheduler
