#include "scheduler/cut/chain_costs.hpp"

#include <algorithm>
#include <cmath>

#include "scheduler/model/model.hpp"
#include "scheduler/model/stage_cut.hpp"

namespace isthmus::scheduler {

namespace {

template <typename T>
std::vector<T> summed(const std::vector<T>& values) {
    std::vector<T> sums(1, T{0});
    for (const T value : values) sums.push_back(sums.back() + value);
    return sums;
}

template <typename T>
bool isList(const std::vector<T>& list, std::size_t length, T least) {
    return list.empty() ||
           (list.size() == length && std::all_of(list.begin(), list.end(), [&](T value) {
                return std::isfinite(static_cast<double>(value)) && value >= least;
            }));
}

}  // namespace

ChainCosts::ChainCosts(const ChainProblem& problem)
    : layers_(static_cast<int>(problem.seconds.size())),
      seconds_(summed(problem.seconds)),
      state_(summed(problem.stateBytes)),
      kept_(summed(problem.keptBytes)),
      links_(problem.linkSeconds),
      speed_(problem.speed),
      capacity_(problem.capacity),
      inFlight_(problem.inFlight) {}

bool ChainCosts::fits(int first, int end, std::int64_t capacity, std::int64_t inFlight) const {
    if (capacity == INT64_MAX) return true;
    std::int64_t need = state_.size() > 1 ? state_[place(end)] - state_[place(first)] : 0;
    if (kept_.size() > 1) {
        const std::int64_t kept = productOrMost(kept_[place(end)] - kept_[place(first)], inFlight);
        need = kept > kMostBytes - need ? kMostBytes : need + kept;
    }
    return need <= capacity;
}

Status checkProblem(const ChainProblem& problem) {
    const std::size_t layers = problem.seconds.size();
    const auto stages = static_cast<std::size_t>(problem.stages);
    if (problem.stages < 1 || stages > layers) {
        return Status::invalidArgument(std::to_string(layers) + " layers cannot be cut into " +
                                       std::to_string(problem.stages) + " stages");
    }
    const bool isByLayer = isList(problem.seconds, layers, 0.0) &&
                           isList(problem.linkSeconds, layers, 0.0) &&
                           isList(problem.stateBytes, layers, std::int64_t{0}) &&
                           isList(problem.keptBytes, layers, std::int64_t{0});
    const bool isByStage = isList(problem.speed, stages, 1e-12) &&
                           isList(problem.capacity, stages, std::int64_t{0}) &&
                           isList(problem.inFlight, stages, std::int64_t{1});
    if (isByLayer && isByStage) return {};
    return Status::invalidArgument(
        "a chain's lists have one number for each layer or stage, none "
        "negative");
}

ChainCut described(const ChainCosts& costs, std::vector<int> firstLayers) {
    ChainCut cut;
    cut.firstLayers = std::move(firstLayers);
    for (std::size_t stage = 0; stage < cut.firstLayers.size(); ++stage) {
        const int first = cut.firstLayers[stage];
        const int end =
            stage + 1 < cut.firstLayers.size() ? cut.firstLayers[stage + 1] : costs.layers();
        cut.slowest = std::max(cut.slowest, costs.pace(first, end, static_cast<int>(stage)));
        cut.sum += costs.compute(first, end, costs.speed(static_cast<int>(stage)));
    }
    return cut;
}

Status nothingFits(const ChainProblem& problem, const ChainCosts& costs) {
    const StageCut even = evenCut(problem.stages, 1, costs.layers());
    for (int stage = 0; stage < problem.stages; ++stage) {
        const std::vector<int> layers = even.layersOfChunk(stage);
        if (costs.stageFits(layers.front(), layers.back() + 1, stage)) continue;
        return Status::resource("no cut fits: with layers dealt evenly, stage " +
                                std::to_string(stage) + " is over its capacity of " +
                                std::to_string(costs.capacity(stage)) + " bytes");
    }
    return Status::resource("no cut fits the capacities");
}

}  // namespace isthmus::scheduler
