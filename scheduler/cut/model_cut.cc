#include "scheduler/cut/model_cut.hpp"

#include <algorithm>

#include "scheduler/cut/by_count.hpp"
#include "scheduler/cut/chain.hpp"
#include "scheduler/cut/dag.hpp"
#include "scheduler/cut/interleaved.hpp"
#include "scheduler/cut/module_tree.hpp"
#include "scheduler/memory/stage_memory.hpp"
#include "scheduler/model/local_parameters.hpp"
#include "scheduler/pipeline/order.hpp"

namespace isthmus::scheduler {

namespace {

int layersOf(const Model& model) {
    return static_cast<int>(model.layers.size());
}

/// The model's layers in seconds and bytes, as the programs over chains and DAGs want them.
ChainProblem problemOf(const Model& model, const Job& job, const Degrees& degrees,
                       const StageDevices& devices) {
    ChainProblem problem;
    problem.stages = degrees[Axis::kPipe];
    problem.speed = devices.speed;
    problem.capacity = devices.memoryBytes;
    const double ways = static_cast<double>(degrees[Axis::kTensor]) * degrees[Axis::kContext];
    const double share = static_cast<double>(job.microBatch) / ways;
    for (const Layer& layer : model.layers) {
        problem.seconds.push_back(operationsOf(layer, job) * share);
        problem.keptBytes.push_back(keptBytes(model, layer, job, degrees));
        LocalParameters local = localParameters(layer, degrees);
        // Whether its owner will be on the same stage is not known yet.
        if (problem.stages > 1) local += tiedParameters(layer, degrees);
        problem.stateBytes.push_back(stateBytes(local, job, degrees).state());
        if (devices.linkBytesPerSecond <= 0) continue;
        const double bytes =
            static_cast<double>(scaledBytes(model, layer.boundaryBytes, bytesOf(job.precision)));
        const double copies = job.pipeCopies == PipeCopies::kOne ? degrees[Axis::kTensor] : 1;
        problem.linkSeconds.push_back(bytes * static_cast<double>(job.microBatch) /
                                      (degrees[Axis::kContext] * copies) /
                                      devices.linkBytesPerSecond);
    }
    const std::int64_t telling = 4 * std::int64_t{problem.stages};
    const std::int64_t micro = microBatches(job, degrees);
    const bool isGpipe = job.order == PipelineOrder::kGpipe;
    const PipelineShape shape{job.order, problem.stages, 1,
                              static_cast<int>(std::min(micro, telling))};
    for (int stage = 0; stage < problem.stages; ++stage) {
        problem.inFlight.push_back(isGpipe ? micro : mostInFlight(shape, stage));
    }
    return problem;
}

ModelCut chainAnswer(const Model& model, const ChainProblem& problem, const ChainCut& cut) {
    return {contiguousCut(problem.stages, layersOf(model), cut.firstLayers), cut.slowest,
            cut.isExact, "chain"};
}

Result<ModelCut> byTime(const Model& model, const ChainProblem& problem) {
    if (!model.isChain()) {
        const Result<DagCut> cut = fastestDagCut(model, problem);
        if (!cut.ok()) return cut.status();
        return ModelCut{cut->cut, cut->slowest, cut->isExact, cut->how};
    }
    const Result<ChainCut> cut = fastestCut(problem);
    if (!cut.ok()) return cut.status();
    return chainAnswer(model, problem, *cut);
}

/// Capacities that only just admit a cut, found by halving; the fullest stage of that cut.
Result<ModelCut> byMemory(const Model& model, ChainProblem problem) {
    const auto stages = static_cast<std::size_t>(problem.stages);
    problem.linkSeconds.clear();
    std::int64_t most = 1;
    for (std::size_t layer = 0; layer < model.layers.size(); ++layer) {
        const std::int64_t flying = productOrMost(problem.keptBytes[layer], problem.inFlight[0]);
        most += std::min(problem.stateBytes[layer] + std::min(flying, kMostBytes / 4),
                         kMostBytes / 4 / layersOf(model));
    }
    std::int64_t least = 0;
    Result<ModelCut> best = Status::resource("no cut fits");
    while (least < most) {
        const std::int64_t middle = least + (most - least) / 2;
        problem.capacity.assign(stages, middle);
        Result<ModelCut> cut = byTime(model, problem);
        if (cut.ok()) {
            best = std::move(cut);
            most = middle;
        } else {
            least = middle + 1;
        }
    }
    if (best.ok()) best->slowest = static_cast<double>(most);
    return best;
}

Result<ModelCut> byTree(const Model& model, const Job& job, const ChainProblem& problem) {
    // SageMaker's memory_weight: 0.8 when it optimizes memory, else 0.2.
    const double memoryWeight = job.objective == Objective::kMemory ? 0.8 : 0.2;
    const ModuleTree tree = treeOf(model, memoryWeight);
    const Result<std::vector<int>> devices = partitionTree(tree, problem.stages);
    if (!devices.ok()) return devices.status();
    ModelCut answer;
    answer.how = "tree";
    answer.cut = {problem.stages, problem.stages, {}};
    for (const Layer& layer : model.layers) {
        const auto module =
            std::find_if(tree.modules.begin(), tree.modules.end(),
                         [&](const ModuleTree::Module& one) { return one.name == layer.name; });
        const auto place = static_cast<std::size_t>(module - tree.modules.begin());
        answer.cut.chunkOf.push_back((*devices)[place]);
    }
    ISTHMUS_TRY(checkCut(model, answer.cut).within("tree"));
    std::vector<double> seconds(static_cast<std::size_t>(problem.stages), 0);
    for (std::size_t layer = 0; layer < model.layers.size(); ++layer) {
        seconds[static_cast<std::size_t>(answer.cut.chunkOf[layer])] += problem.seconds[layer];
    }
    answer.slowest = *std::max_element(seconds.begin(), seconds.end());
    return answer;
}

/// What each rule of a number for each layer counts.
Result<ModelCut> byNumbers(const Model& model, int chunks, int stages, const std::string& method) {
    Result<std::vector<double>> numbers = numbersOf(model, method);
    if (!numbers.ok()) return numbers.status();
    ChainProblem problem;
    problem.stages = chunks;
    problem.seconds = std::move(*numbers);
    const Result<ChainCut> cut = fastestCut(problem);
    if (!cut.ok()) return cut.status();
    ModelCut answer = chainAnswer(model, problem, *cut);
    answer.cut.stages = stages;
    ISTHMUS_TRY(checkCut(model, answer.cut));
    return answer;
}

/// The exact programs look at parts that add up over layers. What does not (the largest layer's
/// working bytes) is taken off the devices' memory when a cut turns out to be over it.
Result<ModelCut> withinMemory(const Model& model, const Job& job, const Degrees& degrees,
                              ChainProblem problem, std::int64_t microBatchesOrZero) {
    const std::vector<std::int64_t> given = problem.capacity;
    for (int turn = 0;; ++turn) {
        Result<ModelCut> answer = Status();
        if (microBatchesOrZero > 0) {
            const Result<ChainCut> cut = leastTimeCut(problem, microBatchesOrZero);
            if (!cut.ok()) return cut.status();
            answer = chainAnswer(model, problem, *cut);
        } else {
            answer = byTime(model, problem);
        }
        if (!answer.ok() || given.empty()) return answer;
        const Result<std::vector<StageMemory>> memory = memoryOf(model, job, degrees, answer->cut);
        if (!memory.ok()) return memory.status();
        std::int64_t working = 0;
        bool fits = true;
        for (std::size_t stage = 0; stage < given.size(); ++stage) {
            working = std::max(working, (*memory)[stage].working);
            fits = fits && (*memory)[stage].total() <= given[stage];
        }
        if (turn > 0) answer->isExact = false;
        if (fits) return answer;
        if (turn > 0) return Status::resource("no cut fits with what a recomputed layer needs");
        for (std::int64_t& bytes : problem.capacity)
            bytes = std::max<std::int64_t>(0, bytes - working);
    }
}

}  // namespace

double operationsOf(const Layer& layer, const Job& job) {
    const auto all =
        static_cast<double>(layer.forwardFlops) + static_cast<double>(layer.backwardFlops);
    if (job.recompute == Recompute::kSelective) {
        return all + static_cast<double>(layer.recomputedFlops);
    }
    const bool isRepeated = job.recompute == Recompute::kFull && layer.checkpointed;
    return all + (isRepeated ? static_cast<double>(layer.forwardFlops) : 0);
}

Result<ModelCut> cutModel(const Model& model, const Job& job, const Degrees& degrees,
                          const std::string& method, const StageDevices& devices) {
    ISTHMUS_TRY(checkModel(model));
    ISTHMUS_TRY(checkJob(job));
    ISTHMUS_TRY(checkDegrees(model, job, degrees));
    const int stages = degrees[Axis::kPipe];
    const int chunks = stages * job.virtualStages;
    if (method == "uniform") {
        ModelCut answer{evenCut(stages, job.virtualStages, layersOf(model)), 0, true, "uniform"};
        const int longest = (layersOf(model) + chunks - 1) / chunks;
        answer.slowest = longest;
        ISTHMUS_TRY(checkCut(model, answer.cut));
        return answer;
    }
    if (method.rfind("manual:", 0) == 0) {
        const Result<std::vector<int>> firsts = firstLayersOf(method, chunks, layersOf(model));
        if (!firsts.ok()) return firsts.status();
        ModelCut answer{contiguousCut(stages, layersOf(model), *firsts), 0, false, "as given"};
        ISTHMUS_TRY(checkCut(model, answer.cut));
        return answer;
    }
    if (method == "parameters" || method.rfind("type:", 0) == 0) {
        return byNumbers(model, chunks, stages, method);
    }
    const ChainProblem problem = problemOf(model, job, degrees, devices);
    const bool isByTime = method == "time" || method == "alpa";
    if (!isByTime && method != "memory" && method != "tree") {
        return Status::invalidArgument("cut \"" + method +
                                       "\" is none of time, alpa, memory, uniform, parameters, "
                                       "type:<regex>, tree, manual:<first layers>");
    }
    if (job.virtualStages > 1) {
        if (!isByTime || !model.isChain()) {
            return Status::unsupported("cut \"" + method +
                                       "\": several chunks a stage are cut by time, from a chain");
        }
        return interleavedCut(model, job, degrees, problem);
    }
    if (method == "memory") return byMemory(model, problem);
    if (method == "tree") return byTree(model, job, problem);
    if (method == "alpa" && !model.isChain()) {
        return Status::unsupported("cut \"alpa\": the model is no chain; \"time\" cuts it");
    }
    return withinMemory(model, job, degrees, problem,
                        method == "alpa" ? microBatches(job, degrees) : 0);
}

}  // namespace isthmus::scheduler
