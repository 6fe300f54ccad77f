#pragma once

#include "scheduler/cut/chain.hpp"
#include "scheduler/model/model.hpp"
#include "scheduler/model/stage_cut.hpp"

namespace isthmus::scheduler {

/// How a cut was found, and what that is worth.
struct DagCut {
    StageCut cut;
    double slowest = 0;    ///< seconds of the slowest stage, or of a slower link
    bool isExact = false;  ///< no other cut is better; else it is the best of those tried
    std::string how;       ///< "12 down-sets", "linearised and refined"
};

/// More sets than these are not enumerated: their pairs are what the program goes through.
inline constexpr std::size_t kMostDownSets = 4096;

/// As fastestCut, for layers that depend on each other as `model` says. `problem.linkSeconds` are
/// those of one layer's output; a stage sends each output that a later one reads, once.
/// Exact by a dynamic program over down-sets (Tarnawski et al., Piper, NeurIPS 2021, section 4)
/// while there are few; otherwise chains along two orders, refined by moving layers. Errors as
/// fastestCut.
Result<DagCut> fastestDagCut(const Model& model, const ChainProblem& problem);

}  // namespace isthmus::scheduler
