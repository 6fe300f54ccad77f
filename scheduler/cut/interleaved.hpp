#pragma once

#include "scheduler/cut/chain.hpp"
#include "scheduler/cut/model_cut.hpp"

namespace isthmus::scheduler {

/// Several chunks on each stage, from a chain: first the chunks whose slowest is fastest (exact),
/// then their ends are moved while that makes the slowest stage faster. `problem` is by layer and
/// stage. Exact when it reaches a bound. kResource: a stage is over its memory.
Result<ModelCut> interleavedCut(const Model& model, const Job& job, const Degrees& degrees,
                                const ChainProblem& problem);

}  // namespace isthmus::scheduler
