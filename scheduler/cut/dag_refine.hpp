#pragma once

#include <vector>

#include "scheduler/cut/chain.hpp"
#include "scheduler/cut/chain_costs.hpp"
#include "scheduler/model/model.hpp"
#include "scheduler/model/stage_cut.hpp"

namespace isthmus::scheduler {

/// Moves layers between neighbouring stages while that makes the slowest stage faster, or as fast
/// with less sent (Kernighan and Lin's moves, without their swaps).
class DagRefinement {
public:
    /// All of them outlive it; `start` keeps the dependencies and the capacities.
    DagRefinement(const Model& model, const ChainProblem& problem, const StageCut& start);

    void run();

    const StageCut& cut() const { return cut_; }
    double slowest() const { return score_.slowest; }

private:
    struct Score {
        double slowest = 0;
        double sent = 0;
        double squares = 0;  ///< of the stages' seconds: even ones win among equals

        auto operator<=>(const Score&) const = default;
    };

    Score scoreOf(const StageCut& cut) const;
    bool fits(const StageCut& cut) const;
    bool mayMove(int layer, int stage) const;
    bool improveOnce();

    const Model& model_;
    const ChainProblem& problem_;
    const ChainCosts costs_;
    std::vector<Edge> edges_;
    std::vector<std::vector<int>> inputs_;
    std::vector<std::vector<int>> readers_;
    StageCut cut_;
    Score score_;
};

}  // namespace isthmus::scheduler
