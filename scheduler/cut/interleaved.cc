#include "scheduler/cut/interleaved.hpp"

#include <algorithm>

#include "scheduler/cut/chain_costs.hpp"
#include "scheduler/memory/stage_memory.hpp"

namespace isthmus::scheduler {

namespace {

/// The chain as chunks; stages' speeds come round.
ChainProblem byChunk(const ChainProblem& problem, int virtualStages) {
    ChainProblem chunks;
    chunks.stages = problem.stages * virtualStages;
    chunks.seconds = problem.seconds;
    for (int turn = 0; turn < virtualStages; ++turn) {
        chunks.speed.insert(chunks.speed.end(), problem.speed.begin(), problem.speed.end());
    }
    return chunks;
}

double slowestStage(const ChainCosts& costs, const std::vector<int>& firsts, int stages) {
    std::vector<double> seconds(static_cast<std::size_t>(stages), 0);
    for (std::size_t chunk = 0; chunk < firsts.size(); ++chunk) {
        const int end = chunk + 1 < firsts.size() ? firsts[chunk + 1] : costs.layers();
        const auto stage = static_cast<int>(chunk) % stages;
        seconds[static_cast<std::size_t>(stage)] +=
            costs.compute(firsts[chunk], end, costs.speed(stage));
    }
    return *std::max_element(seconds.begin(), seconds.end());
}

/// Moves one end, or all ends between two of them, by a layer: that shifts a layer from one stage
/// to any other.
void moveEnds(const ChainCosts& costs, std::vector<int>& firsts, int stages, double bound) {
    double best = slowestStage(costs, firsts, stages);
    constexpr int kMostRounds = 1000;
    for (int round = 0; round < kMostRounds && best > bound; ++round) {
        std::vector<int> better;
        for (std::size_t from = 1; from < firsts.size(); ++from) {
            for (const int by : {-1, 1}) {
                std::vector<int> moved = firsts;
                for (std::size_t to = from; to < firsts.size(); ++to) {
                    moved[to] += by;
                    const int end = to + 1 < moved.size() ? moved[to + 1] : costs.layers();
                    const bool isWithin = moved[from] > moved[from - 1] && moved[to] < end;
                    if (moved[to] < 1 || !isWithin) continue;
                    const double slowest = slowestStage(costs, moved, stages);
                    if (slowest >= best) continue;
                    best = slowest;
                    better = moved;
                }
            }
        }
        if (better.empty()) return;
        firsts = std::move(better);
    }
}

}  // namespace

Result<ModelCut> interleavedCut(const Model& model, const Job& job, const Degrees& degrees,
                                const ChainProblem& problem) {
    ISTHMUS_TRY(checkProblem(problem));
    const Result<ChainCut> chunks = fastestCut(byChunk(problem, job.virtualStages));
    if (!chunks.ok()) return chunks.status();
    const ChainCosts costs(problem);
    double speeds = 0;
    for (int stage = 0; stage < problem.stages; ++stage) speeds += costs.speed(stage);
    const double bound = costs.compute(0, costs.layers(), speeds);
    std::vector<int> firsts = chunks->firstLayers;
    moveEnds(costs, firsts, problem.stages, bound * (1 + 1e-12));
    ModelCut answer;
    answer.cut = contiguousCut(problem.stages, costs.layers(), firsts);
    answer.slowest = slowestStage(costs, firsts, problem.stages);
    answer.isExact = answer.slowest <= bound * (1 + 1e-12);
    answer.how = "interleaved chain";
    if (problem.capacity.empty()) return answer;
    const Result<std::vector<StageMemory>> memory = memoryOf(model, job, degrees, answer.cut);
    if (!memory.ok()) return memory.status();
    for (std::size_t stage = 0; stage < memory->size(); ++stage) {
        if ((*memory)[stage].total() <= problem.capacity[stage]) continue;
        return Status::resource("interleaved: stage " + std::to_string(stage) + " needs " +
                                std::to_string((*memory)[stage].total()) + " bytes of " +
                                std::to_string(problem.capacity[stage]));
    }
    return answer;
}

}  // namespace isthmus::scheduler
