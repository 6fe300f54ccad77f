#include "scheduler/cut/chain.hpp"

#include <algorithm>

#include "scheduler/cut/chain_costs.hpp"

namespace isthmus::scheduler {

namespace {

std::size_t at(int index) {
    return static_cast<std::size_t>(index);
}

/// Best values of all prefixes of a chain, stage by stage, with where the last stage begins.
class Table {
public:
    Table(int stages, int layers)
        : layers_(layers),
          value_(at(layers + 1), kImpossible),
          next_(at(layers + 1), kImpossible),
          begin_(at(stages) * at(layers + 1), -1) {
        value_[0] = 0;
    }

    double value(int end) const { return value_[at(end)]; }
    void set(int stage, int end, double value, int begin) {
        next_[at(end)] = value;
        begin_[at(stage) * at(layers_ + 1) + at(end)] = begin;
    }
    void nextStage() {
        value_.swap(next_);
        std::fill(next_.begin(), next_.end(), kImpossible);
    }

    std::vector<int> firstLayers(int stages) const {
        std::vector<int> first(at(stages));
        int end = layers_;
        for (int stage = stages; stage-- > 0;) {
            end = begin_[at(stage) * at(layers_ + 1) + at(end)];
            first[at(stage)] = end;
        }
        return first;
    }

private:
    int layers_;
    std::vector<double> value_;
    std::vector<double> next_;
    std::vector<int> begin_;
};

/// Fills a table. `join(before, computing, link)` is what a stage makes of the value before it, or
/// kImpossible when it is too slow; `stops(computing, best)`: no longer stage can be better.
template <typename Join, typename Stops>
Table filled(const ChainProblem& problem, const ChainCosts& costs, const Join& join,
             const Stops& stops) {
    const int layers = costs.layers();
    Table table(problem.stages, layers);
    for (int stage = 0; stage < problem.stages; ++stage) {
        // At least one layer for each of the other stages.
        const int lastEnd = layers - (problem.stages - 1 - stage);
        const double speed = costs.speed(stage);
        for (int end = stage + 1; end <= lastEnd; ++end) {
            if (stage + 1 == problem.stages && end < layers) continue;
            double best = kImpossible;
            int bestFirst = -1;
            const double link = costs.link(end);
            for (int first = end - 1; first >= stage; --first) {
                const double computing = costs.compute(first, end, speed);
                if (stops(computing, best) || !costs.stageFits(first, end, stage)) break;
                const double value = join(table.value(first), computing, link);
                // Of equals the longer stage later: the first stages are full.
                if (value >= best) continue;
                best = value;
                bestFirst = first;
            }
            table.set(stage, end, best, bestFirst);
        }
        table.nextStage();
    }
    return table;
}

/// Alpa's inner program: the least sum when no stage is slower than `pace`.
Result<ChainCut> leastSumWithin(const ChainProblem& problem, const ChainCosts& costs, double pace) {
    const Table table = filled(
        problem, costs,
        [&](double before, double computing, double link) {
            return link > pace ? kImpossible : before + computing;
        },
        [&](double computing, double) { return computing > pace; });
    if (table.value(costs.layers()) == kImpossible) return nothingFits(problem, costs);
    return described(costs, table.firstLayers(problem.stages));
}

/// What stages can take, between two bounds: every pace that could be the slowest.
std::vector<double> pacesBetween(const ChainProblem& problem, const ChainCosts& costs, double least,
                                 double most) {
    std::vector<double> paces;
    const auto keep = [&](double pace) {
        if (pace > least && pace <= most) paces.push_back(pace);
    };
    const bool isUniform = problem.speed.empty();
    for (int stage = 0; stage < (isUniform ? 1 : problem.stages); ++stage) {
        for (int end = 1; end <= costs.layers(); ++end) {
            keep(costs.link(end));
            for (int first = end - 1; first >= 0; --first) {
                const double computing = costs.compute(first, end, costs.speed(stage));
                if (computing > most) break;
                keep(computing);
            }
        }
        std::sort(paces.begin(), paces.end());
        paces.erase(std::unique(paces.begin(), paces.end()), paces.end());
    }
    return paces;
}

/// How many paces to try: some hundred million steps of the inner program are a second. A stage of
/// twice the least pace has about twice as many layers as it needs.
std::size_t mostTries(const ChainProblem& problem) {
    const double layers = static_cast<double>(problem.seconds.size());
    const double stages = problem.stages;
    constexpr double kSteps = 2e8;
    return static_cast<std::size_t>(
        std::clamp(kSteps / (stages * layers * (2 * layers / stages + 1)), 16.0,
                   static_cast<double>(kMostPaces)));
}

}  // namespace

Result<ChainCut> fastestCut(const ChainProblem& problem) {
    ISTHMUS_TRY(checkProblem(problem));
    const ChainCosts costs(problem);
    const Table table = filled(
        problem, costs,
        [](double before, double computing, double link) {
            return std::max({before, computing, link});
        },
        [](double computing, double best) { return computing >= best; });
    if (table.value(costs.layers()) == kImpossible) return nothingFits(problem, costs);
    return described(costs, table.firstLayers(problem.stages));
}

Result<ChainCut> leastTimeCut(const ChainProblem& problem, std::int64_t microBatches) {
    if (microBatches < 1) return Status::invalidArgument("a step has at least one micro-batch");
    const Result<ChainCut> fastest = fastestCut(problem);
    if (!fastest.ok()) return fastest;
    const ChainCosts costs(problem);
    const double repeats = static_cast<double>(microBatches - 1);
    const auto total = [&](const ChainCut& cut) { return cut.sum + repeats * cut.slowest; };

    Result<ChainCut> best = leastSumWithin(problem, costs, fastest->slowest);
    if (!best.ok()) return best;
    const Result<ChainCut> unbounded = leastSumWithin(problem, costs, kImpossible);
    if (!unbounded.ok() || total(*unbounded) <= total(*best)) return unbounded;
    // A slower pace must win by its sum what it loses by its repeats.
    const auto isWorth = [&](double pace) {
        return unbounded->sum + repeats * pace < total(*best);
    };
    const double slowest = repeats > 0 ? (total(*best) - unbounded->sum) / repeats : kImpossible;
    const std::vector<double> paces =
        pacesBetween(problem, costs, fastest->slowest, std::min(slowest, unbounded->slowest));
    const std::size_t most = mostTries(problem);
    const std::size_t stride = (paces.size() + most - 1) / most;
    for (std::size_t place = 0; place < paces.size() && isWorth(paces[place]); place += stride) {
        const Result<ChainCut> cut = leastSumWithin(problem, costs, paces[place]);
        if (cut.ok() && total(*cut) < total(*best)) best = cut;
        if (stride > 1) best->isExact = false;
    }
    return best;
}

}  // namespace isthmus::scheduler
