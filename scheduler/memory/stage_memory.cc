#include "scheduler/memory/stage_memory.hpp"

#include <algorithm>

#include "scheduler/pipeline/order.hpp"

namespace isthmus::scheduler {

namespace {

/// Sums of these are below 2^63.
constexpr std::int64_t kMostPart = kMostBytes / 8;

/// Bytes that a layer keeps of one micro-batch if it recomputes like `recompute`.
std::int64_t keptAs(const Model& model, const Layer& layer, const Job& job, const Degrees& degrees,
                    Recompute recompute) {
    const int element = bytesOf(job.precision);
    const auto ofMicroBatch = [&](std::int64_t bytes, std::int64_t ways) {
        const std::int64_t all = productOrMost(scaledBytes(model, bytes, element), job.microBatch);
        return std::min(dividedUp(all, ways * degrees[Axis::kContext]), kMostPart / 4);
    };
    const int tensor = degrees[Axis::kTensor];
    const int whole = job.sequenceParallel ? tensor : 1;
    if (recompute == Recompute::kFull && layer.checkpointed) {
        return ofMicroBatch(layer.inputBytes, whole);
    }
    const bool dropsScores = recompute == Recompute::kSelective;
    return ofMicroBatch(layer.replicatedActivationBytes, whole) +
           ofMicroBatch(layer.splitActivationBytes, tensor) +
           (dropsScores ? 0 : ofMicroBatch(layer.droppedActivationBytes, tensor));
}

/// The most activations of a stage; its order repeats, so few micro-batches tell.
std::int64_t activationsOf(const Model& model, const Job& job, const Degrees& degrees,
                           const StageCut& cut, int stage) {
    std::vector<std::int64_t> bytesOfChunk(static_cast<std::size_t>(cut.chunks), 0);
    for (const int place : cut.layersOfStage(stage)) {
        std::int64_t& bytes =
            bytesOfChunk[static_cast<std::size_t>(cut.chunkOf[static_cast<std::size_t>(place)])];
        const Layer& layer = model.layers[static_cast<std::size_t>(place)];
        bytes = std::min(bytes + keptBytes(model, layer, job, degrees), kMostPart);
    }
    const std::int64_t micro = microBatches(job, degrees);
    if (job.order == PipelineOrder::kGpipe) {
        return std::min(productOrMost(bytesOfChunk[static_cast<std::size_t>(stage)], micro),
                        kMostPart);
    }
    const std::int64_t telling = 4 * std::int64_t{cut.stages};
    const PipelineShape shape{job.order, cut.stages, job.virtualStages,
                              static_cast<int>(std::min(micro, telling))};
    return std::min(mostKept(shape, stage, bytesOfChunk), kMostPart);
}

std::int64_t workingOf(const Model& model, const Job& job, const Degrees& degrees,
                       const StageCut& cut, int stage) {
    std::int64_t recomputed = 0;
    std::int64_t gathered = 0;
    for (const int place : cut.layersOfStage(stage)) {
        const Layer& layer = model.layers[static_cast<std::size_t>(place)];
        const LocalParameters local = localParameters(layer, degrees);
        // The layer in use and the one fetched before its turn; the gradient of the former.
        const std::int64_t weights = productOrMost(local.all(), 2 * bytesOf(job.precision));
        const std::int64_t gradient =
            productOrMost(local.trained(), bytesOf(job.gradientPrecision));
        gathered = std::max(gathered,
                            std::min(weights, kMostPart / 2) + std::min(gradient, kMostPart / 2));
        if (job.recompute != Recompute::kFull || !layer.checkpointed) continue;
        recomputed = std::max(recomputed, keptAs(model, layer, job, degrees, Recompute::kNone));
    }
    std::int64_t messages = 0;
    if (cut.stages > 1) {
        const std::vector<std::int64_t> crossing = boundaryBytes(model, cut);
        const std::int64_t bytes = *std::max_element(crossing.begin(), crossing.end());
        const std::int64_t whole =
            productOrMost(scaledBytes(model, bytes, bytesOf(job.precision)), job.microBatch);
        // An activation and a gradient on their way in, and out.
        messages = std::min(dividedUp(whole, degrees[Axis::kContext]), kMostPart / 4) * 4;
    }
    return std::min(recomputed, kMostPart) + messages +
           (job.zeroStage == 3 ? std::min(gathered, kMostPart) : 0);
}

}  // namespace

std::int64_t keptBytes(const Model& model, const Layer& layer, const Job& job,
                       const Degrees& degrees) {
    return keptAs(model, layer, job, degrees, job.recompute);
}

StageMemory stateBytes(const LocalParameters& local, const Job& job, const Degrees& degrees) {
    const std::int64_t denseWays = shardWays(job, degrees) * degrees[Axis::kContext];
    const std::int64_t expertWays = std::int64_t{degrees[Axis::kData]} * degrees[Axis::kContext];
    const auto bytes = [&](std::int64_t dense, std::int64_t each, int shardedFrom) {
        const bool isSharded = job.zeroStage >= shardedFrom;
        const auto part = [&](std::int64_t parameters, std::int64_t ways) {
            return std::min(productOrMost(dividedUp(parameters, isSharded ? ways : 1), each),
                            kMostPart / 2);
        };
        return part(dense, denseWays) + part(local.expert, expertWays);
    };
    StageMemory memory;
    memory.weights = bytes(local.dense, bytesOf(job.precision), 3);
    memory.gradients = bytes(local.denseTrained, bytesOf(job.gradientPrecision), 2);
    memory.optimizer = bytes(local.denseTrained, optimizerBytesPerParameter(job), 1);
    return memory;
}

Result<std::vector<StageMemory>> memoryOf(const Model& model, const Job& job,
                                          const Degrees& degrees, const StageCut& cut) {
    ISTHMUS_TRY(checkJob(job));
    ISTHMUS_TRY(checkDegrees(model, job, degrees));
    ISTHMUS_TRY(checkCut(model, cut));
    if (cut.stages != degrees[Axis::kPipe] || cut.chunks != cut.stages * job.virtualStages) {
        return Status::invalidArgument("cut is wrong: it has " + std::to_string(cut.stages) +
                                       " stages and " + std::to_string(cut.chunks) + " chunks");
    }
    std::vector<StageMemory> stages;
    for (int stage = 0; stage < cut.stages; ++stage) {
        LocalParameters local;
        for (const LocalParameters& one : parametersOfStage(model, cut, stage, degrees)) {
            local += one;
        }
        StageMemory memory = stateBytes(local, job, degrees);
        memory.activations = activationsOf(model, job, degrees, cut, stage);
        memory.working = workingOf(model, job, degrees, cut, stage);
        for (const MemoryPart& part : kMemoryParts) {
            if (memory.*part.member < kMostPart) continue;
            return Status::invalidArgument("a stage's " + std::string(part.name) +
                                           " are more than 2^60 bytes");
        }
        stages.push_back(memory);
    }
    return stages;
}

}  // namespace isthmus::scheduler
