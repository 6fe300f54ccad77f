#include "scheduler/cut/dag_refine.hpp"

#include <algorithm>

namespace isthmus::scheduler {

namespace {

std::size_t at(int index) {
    return static_cast<std::size_t>(index);
}

}  // namespace

DagRefinement::DagRefinement(const Model& model, const ChainProblem& problem, const StageCut& start)
    : model_(model),
      problem_(problem),
      costs_(problem),
      edges_(model.dependencies()),
      inputs_(model.layers.size()),
      readers_(model.layers.size()),
      cut_(start) {
    for (const Edge& edge : edges_) {
        inputs_[at(edge.to)].push_back(edge.from);
        readers_[at(edge.from)].push_back(edge.to);
    }
    score_ = scoreOf(cut_);
}

DagRefinement::Score DagRefinement::scoreOf(const StageCut& cut) const {
    std::vector<double> seconds(at(cut.stages), 0);
    std::vector<double> links(at(cut.stages), 0);
    for (std::size_t layer = 0; layer < model_.layers.size(); ++layer) {
        const int stage = cut.chunkOf[layer];
        seconds[at(stage)] += problem_.seconds[layer] / costs_.speed(stage);
        if (problem_.linkSeconds.empty()) continue;
        int last = stage;
        for (const int reader : readers_[layer]) last = std::max(last, cut.chunkOf[at(reader)]);
        for (int from = stage; from < last; ++from) links[at(from)] += problem_.linkSeconds[layer];
    }
    Score score;
    for (std::size_t stage = 0; stage < seconds.size(); ++stage) {
        score.slowest = std::max({score.slowest, seconds[stage], links[stage]});
        score.sent += links[stage];
        score.squares += seconds[stage] * seconds[stage];
    }
    return score;
}

bool DagRefinement::fits(const StageCut& cut) const {
    if (problem_.capacity.empty()) return true;
    std::vector<std::int64_t> need(at(cut.stages), 0);
    for (std::size_t layer = 0; layer < model_.layers.size(); ++layer) {
        const int stage = cut.chunkOf[layer];
        std::int64_t& bytes = need[at(stage)];
        if (!problem_.stateBytes.empty()) bytes += problem_.stateBytes[layer];
        if (problem_.keptBytes.empty()) continue;
        bytes = std::min(bytes, kMostBytes / 2) +
                std::min(productOrMost(problem_.keptBytes[layer], costs_.inFlight(stage)),
                         kMostBytes / 2);
    }
    for (int stage = 0; stage < cut.stages; ++stage) {
        if (need[at(stage)] > costs_.capacity(stage)) return false;
    }
    return true;
}

bool DagRefinement::mayMove(int layer, int stage) const {
    const auto isBefore = [&](int input) { return cut_.chunkOf[at(input)] <= stage; };
    const auto isAfter = [&](int reader) { return cut_.chunkOf[at(reader)] >= stage; };
    const int from = cut_.chunkOf[at(layer)];
    const auto others = std::count(cut_.chunkOf.begin(), cut_.chunkOf.end(), from) - 1;
    return others > 0 &&
           std::all_of(inputs_[at(layer)].begin(), inputs_[at(layer)].end(), isBefore) &&
           std::all_of(readers_[at(layer)].begin(), readers_[at(layer)].end(), isAfter);
}

bool DagRefinement::improveOnce() {
    StageCut best = cut_;
    Score bestScore = score_;
    for (int layer = 0; layer < static_cast<int>(model_.layers.size()); ++layer) {
        const int from = cut_.chunkOf[at(layer)];
        for (const int to : {from - 1, from + 1}) {
            if (to < 0 || to >= cut_.stages || !mayMove(layer, to)) continue;
            StageCut moved = cut_;
            moved.chunkOf[at(layer)] = to;
            const Score score = scoreOf(moved);
            if (!(score < bestScore) || !fits(moved)) continue;
            best = moved;
            bestScore = score;
        }
    }
    if (!(bestScore < score_)) return false;
    cut_ = std::move(best);
    score_ = bestScore;
    return true;
}

void DagRefinement::run() {
    // Each move costs layers x (layers + edges); large models get fewer, the largest none.
    constexpr double kMostSteps = 2e8;
    const double once = static_cast<double>(model_.layers.size()) *
                        static_cast<double>(model_.layers.size() + edges_.size());
    const int most = std::clamp(static_cast<int>(kMostSteps / std::max(once, 1.0)), 0, 1000);
    for (int move = 0; move < most && improveOnce(); ++move) {
    }
}

}  // namespace isthmus::scheduler
