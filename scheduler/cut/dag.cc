#include "scheduler/cut/dag.hpp"

#include <algorithm>
#include <numeric>

#include "scheduler/cut/chain_costs.hpp"
#include "scheduler/cut/dag_refine.hpp"
#include "scheduler/cut/down_sets.hpp"

namespace isthmus::scheduler {

namespace {

std::size_t at(int index) {
    return static_cast<std::size_t>(index);
}

/// Sums over each down-set, and what a cut behind it sends.
struct SetSums {
    std::vector<double> seconds;
    std::vector<double> link;
    std::vector<std::int64_t> state;
    std::vector<std::int64_t> kept;
};

SetSums sumsOf(const Model& model, const ChainProblem& problem, const DownSets& sets) {
    SetSums sums;
    const std::vector<Edge> edges = model.dependencies();
    const int layers = static_cast<int>(model.layers.size());
    for (std::size_t set = 0; set < sets.number(); ++set) {
        double seconds = 0;
        std::int64_t state = 0;
        std::int64_t kept = 0;
        for (int layer = 0; layer < layers; ++layer) {
            if (!sets.has(set, layer)) continue;
            seconds += problem.seconds[at(layer)];
            if (!problem.stateBytes.empty()) state += problem.stateBytes[at(layer)];
            if (!problem.keptBytes.empty()) kept += problem.keptBytes[at(layer)];
        }
        std::vector<bool> isSent(model.layers.size());
        double link = 0;
        for (const Edge& edge : edges) {
            if (!sets.has(set, edge.from) || sets.has(set, edge.to)) continue;
            if (isSent[at(edge.from)] || problem.linkSeconds.empty()) continue;
            isSent[at(edge.from)] = true;
            link += problem.linkSeconds[at(edge.from)];
        }
        sums.seconds.push_back(seconds);
        sums.link.push_back(link);
        sums.state.push_back(state);
        sums.kept.push_back(kept);
    }
    return sums;
}

/// The program over pairs of down-sets, one within the other.
Result<DagCut> exactCut(const Model& model, const ChainProblem& problem, const DownSets& sets) {
    const SetSums sums = sumsOf(model, problem, sets);
    const ChainCosts costs(problem);
    const std::size_t number = sets.number();
    std::vector<double> value(number, kImpossible);
    std::vector<std::vector<int>> before(at(problem.stages), std::vector<int>(number, -1));
    value[0] = 0;
    for (int stage = 0; stage < problem.stages; ++stage) {
        std::vector<double> next(number, kImpossible);
        const double speed = costs.speed(stage);
        const bool isLast = stage + 1 == problem.stages;
        for (std::size_t outer = isLast ? number - 1 : 1; outer < number; ++outer) {
            for (std::size_t inner = 0; inner < outer; ++inner) {
                const double computing = (sums.seconds[outer] - sums.seconds[inner]) / speed;
                const double slowest = std::max({value[inner], computing, sums.link[outer]});
                if (slowest >= next[outer] || sets.layersIn(inner) == sets.layersIn(outer))
                    continue;
                if (!sets.isWithin(inner, outer)) continue;
                const std::int64_t kept =
                    productOrMost(sums.kept[outer] - sums.kept[inner], costs.inFlight(stage));
                const std::int64_t state = sums.state[outer] - sums.state[inner];
                if (kept > costs.capacity(stage) || state > costs.capacity(stage) - kept) continue;
                next[outer] = slowest;
                before[at(stage)][outer] = static_cast<int>(inner);
            }
        }
        value.swap(next);
    }
    if (value[number - 1] == kImpossible) return nothingFits(problem, costs);
    DagCut answer;
    answer.slowest = value[number - 1];
    answer.isExact = true;
    answer.how = std::to_string(number) + " down-sets";
    answer.cut = {problem.stages, problem.stages, std::vector<int>(model.layers.size(), 0)};
    std::size_t outer = number - 1;
    for (int stage = problem.stages; stage-- > 0;) {
        const auto inner = at(before[at(stage)][outer]);
        for (std::size_t layer = 0; layer < model.layers.size(); ++layer) {
            const int place = static_cast<int>(layer);
            if (sets.has(outer, place) && !sets.has(inner, place)) {
                answer.cut.chunkOf[layer] = stage;
            }
        }
        outer = inner;
    }
    return answer;
}

/// Branch after branch instead of side by side: a layer follows its last input as soon as it can.
std::vector<int> depthFirst(const Model& model) {
    const std::size_t layers = model.layers.size();
    std::vector<int> missing(layers, 0);
    std::vector<std::vector<int>> readers(layers);
    for (const Edge& edge : model.dependencies()) {
        ++missing[at(edge.to)];
        readers[at(edge.from)].push_back(edge.to);
    }
    std::vector<int> ready;
    for (std::size_t layer = layers; layer-- > 0;) {
        if (missing[layer] == 0) ready.push_back(static_cast<int>(layer));
    }
    std::vector<int> order;
    while (!ready.empty()) {
        const int layer = ready.back();
        ready.pop_back();
        order.push_back(layer);
        for (auto reader = readers[at(layer)].rbegin(); reader != readers[at(layer)].rend();
             ++reader) {
            if (--missing[at(*reader)] == 0) ready.push_back(*reader);
        }
    }
    return order;
}

/// The chain along one order, its messages left out: they depend on the cut.
Result<StageCut> alongOrder(const ChainProblem& problem, const std::vector<int>& order) {
    ChainProblem chain = problem;
    chain.linkSeconds.clear();
    for (std::size_t place = 0; place < order.size(); ++place) {
        const std::size_t layer = at(order[place]);
        chain.seconds[place] = problem.seconds[layer];
        if (!problem.stateBytes.empty()) chain.stateBytes[place] = problem.stateBytes[layer];
        if (!problem.keptBytes.empty()) chain.keptBytes[place] = problem.keptBytes[layer];
    }
    const Result<ChainCut> cut = fastestCut(chain);
    if (!cut.ok()) return cut.status();
    const StageCut placed =
        contiguousCut(problem.stages, static_cast<int>(order.size()), cut->firstLayers);
    StageCut answer = placed;
    for (std::size_t place = 0; place < order.size(); ++place) {
        answer.chunkOf[at(order[place])] = placed.chunkOf[place];
    }
    return answer;
}

/// No stage can be faster than the dearest layer on the fastest device, nor than a fair share.
double leastPace(const ChainProblem& problem) {
    double speeds = 0;
    double fastest = 0;
    const ChainCosts costs(problem);
    for (int stage = 0; stage < problem.stages; ++stage) {
        speeds += costs.speed(stage);
        fastest = std::max(fastest, costs.speed(stage));
    }
    const double all = std::accumulate(problem.seconds.begin(), problem.seconds.end(), 0.0);
    const double dearest = *std::max_element(problem.seconds.begin(), problem.seconds.end());
    return std::max(all / speeds, dearest / fastest);
}

}  // namespace

Result<DagCut> fastestDagCut(const Model& model, const ChainProblem& problem) {
    ISTHMUS_TRY(checkProblem(problem));
    if (problem.seconds.size() != model.layers.size()) {
        return Status::invalidArgument("seconds of " + std::to_string(problem.seconds.size()) +
                                       " layers for a model of " +
                                       std::to_string(model.layers.size()));
    }
    // Pairs of sets, and stages: some hundred million simple steps are a second.
    constexpr std::size_t kMostSteps = 200'000'000;
    const std::optional<DownSets> sets = DownSets::of(model, kMostDownSets);
    const bool isSmall =
        sets && sets->number() * sets->number() / 2 * at(problem.stages) <= kMostSteps;
    if (isSmall) return exactCut(model, problem, *sets);

    std::vector<int> given(model.layers.size());
    std::iota(given.begin(), given.end(), 0);
    DagCut best;
    Status failure;
    for (const std::vector<int>& order : {given, depthFirst(model)}) {
        const Result<StageCut> along = alongOrder(problem, order);
        if (!along.ok()) {
            failure = along.status();
            continue;
        }
        DagRefinement refinement(model, problem, *along);
        refinement.run();
        if (!best.how.empty() && refinement.slowest() >= best.slowest) continue;
        best = {refinement.cut(), refinement.slowest(), false, "linearised and refined"};
    }
    if (best.how.empty()) return failure;
    if (best.slowest <= leastPace(problem) * (1 + 1e-12)) {
        best.isExact = true;
        best.how += ", at the bound";
    }
    return best;
}

}  // namespace isthmus::scheduler
