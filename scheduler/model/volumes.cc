#include "scheduler/model/volumes.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "scheduler/model/local_parameters.hpp"

namespace isthmus::scheduler {

namespace {

/// Collects the calls of one stage; equal ones are counted together.
class Calls {
public:
    void add(Span span, Collective kind, std::int64_t bytes, std::int64_t calls) {
        if (bytes == 0 || calls == 0) return;
        std::int64_t& known = calls_[{span, kind, bytes}];
        known = std::min(kMostBytes - calls, known) + calls;
    }

    /// Those of groups of more than one rank.
    std::vector<Traffic> traffic(const AxisVolumes& volumes) const {
        std::vector<Traffic> list;
        for (const auto& [key, calls] : calls_) {
            const auto& [span, kind, bytes] = key;
            if (volumes.ranksOf(span) > 1) list.push_back({span, kind, bytes, calls});
        }
        return list;
    }

private:
    std::map<std::tuple<Span, Collective, std::int64_t>, std::int64_t> calls_;
};

/// One stage of one job: what its layers make a rank send.
class StageCount {
public:
    StageCount(const Model& model, const Job& job, const AxisVolumes& volumes)
        : model_(model),
          job_(job),
          volumes_(volumes),
          tensor_(volumes.degrees[Axis::kTensor]),
          context_(volumes.degrees[Axis::kContext]),
          micro_(microBatches(job, volumes.degrees)),
          again_(job.recompute == Recompute::kFull ? 1 : 0) {}

    void addLayer(const Layer& layer) {
        addTensor(layer);
        addContext(layer);
        if (layer.routedBytes == 0) return;
        // Dispatch and combine, forward and backward (and forward again).
        const std::int64_t ways = job_.sequenceParallel ? tensor_ : 1;
        calls_.add(Span::kExpert, Collective::kAllToAll, ofMicroBatch(layer.routedBytes, ways),
                   micro_ * (4 + 2 * again(layer)));
    }

    /// Gradients, and the gathering of parameters that are sharded.
    void addState(const LocalParameters& local) {
        const int gradient = bytesOf(job_.gradientPrecision);
        const int weight = bytesOf(job_.precision);
        const bool isSharded = job_.zeroStage > 0;
        const Span dense = isSharded ? Span::kShard : Span::kData;
        addSums(dense, local.denseTrained, gradient);
        addSums(Span::kExpertData, local.expert, gradient);
        if (isSharded) {
            const std::int64_t shard =
                dividedUp(local.denseTrained, volumes_.ranksOf(Span::kShard));
            calls_.add(Span::kReplicate, Collective::kAllReduce, productOrMost(shard, gradient), 1);
            const bool isGathered = job_.zeroStage == 3;
            addGathers(dense, isGathered ? local.dense : local.denseTrained, weight);
            addGathers(Span::kExpertData, local.expert, weight);
        }
        if (job_.sequenceParallel) {
            calls_.add(Span::kTensor, Collective::kAllReduce,
                       productOrMost(local.replicated, gradient), 1);
        }
    }

    void addTied(std::int64_t parameters) {
        calls_.add(Span::kTied, Collective::kAllReduce,
                   productOrMost(parameters, bytesOf(job_.gradientPrecision)), 1);
    }

    /// Bytes of one micro-batch on one rank, of `bytes` of a sample.
    std::int64_t ofMicroBatch(std::int64_t bytes, std::int64_t ways) const {
        const std::int64_t scaled = scaledBytes(model_, bytes, bytesOf(job_.precision));
        return dividedUp(productOrMost(scaled, job_.microBatch), ways * context_);
    }

    std::vector<Traffic> traffic() const { return calls_.traffic(volumes_); }

private:
    std::int64_t again(const Layer& layer) const { return layer.checkpointed ? again_ : 0; }

    void addTensor(const Layer& layer) {
        const std::int64_t forward = layer.tensorForward * (1 + again(layer));
        const std::int64_t reductions = micro_ * (forward + layer.tensorBackward);
        const std::int64_t bytes = ofMicroBatch(layer.reductionBytes, 1);
        if (!job_.sequenceParallel) {
            return calls_.add(Span::kTensor, Collective::kAllReduce, bytes, reductions);
        }
        // Only the shard of an input is kept; backward gathers it again (arXiv 2205.05198, 4.2.2).
        const std::int64_t gatheredAgain = micro_ * layer.tensorBackward;
        calls_.add(Span::kTensor, Collective::kAllGather, bytes, reductions + gatheredAgain);
        calls_.add(Span::kTensor, Collective::kReduceScatter, bytes, reductions);
    }

    void addContext(const Layer& layer) {
        if (layer.keyValueBytes == 0) return;
        // Tensor groups split heads; when there are fewer heads of keys, each rank has one.
        const int keyWays =
            model_.keyValueHeads > 0 ? std::min(tensor_, model_.keyValueHeads) : tensor_;
        const std::int64_t passes = micro_ * (1 + again(layer));
        if (job_.contextMethod == ContextMethod::kRing) {
            // Each rank's part goes round: an all-gather's bytes. Backward sends keys and values
            // again, and their gradients home.
            const std::int64_t whole = productOrMost(
                scaledBytes(model_, layer.keyValueBytes, bytesOf(job_.precision)), job_.microBatch);
            const std::int64_t bytes = dividedUp(whole, keyWays);
            calls_.add(Span::kContext, Collective::kAllGather, bytes, passes + micro_);
            calls_.add(Span::kContext, Collective::kReduceScatter, bytes, micro_);
            return;
        }
        // Queries, and the output which has their size; keys and values are half of theirs each.
        const std::int64_t calls = 2 * (passes + micro_);
        calls_.add(Span::kContext, Collective::kAllToAll, ofMicroBatch(layer.queryBytes, tensor_),
                   calls);
        calls_.add(Span::kContext, Collective::kAllToAll,
                   dividedUp(ofMicroBatch(layer.keyValueBytes, keyWays), 2), calls);
    }

    void addSums(Span span, std::int64_t parameters, int gradientBytes) {
        const bool isSharded = job_.zeroStage > 0;
        calls_.add(span, isSharded ? Collective::kReduceScatter : Collective::kAllReduce,
                   productOrMost(parameters, gradientBytes), job_.zeroStage == 3 ? micro_ : 1);
    }
    void addGathers(Span span, std::int64_t parameters, int weightBytes) {
        const std::int64_t passes = job_.reshardAfterForward ? 2 : 1;
        calls_.add(span, Collective::kAllGather, productOrMost(parameters, weightBytes),
                   job_.zeroStage == 3 ? micro_ * passes : 1);
    }

    const Model& model_;
    const Job& job_;
    const AxisVolumes& volumes_;
    const int tensor_;
    const int context_;
    const std::int64_t micro_;
    const std::int64_t again_;  ///< passes that full recomputation adds
    Calls calls_;
};

bool isTooMuch(const StageVolumes& stage) {
    constexpr std::int64_t kMost = kMostBytes / 4;
    std::int64_t total = std::max(stage.toNextBytes, stage.toPreviousBytes);
    for (const Traffic& one : stage.traffic) {
        if (total >= kMost) return true;
        total += std::min(productOrMost(one.bytes, one.calls), kMost);
    }
    return total >= kMost;
}

void addPipe(const std::vector<std::int64_t>& crossing, const Job& job, const StageCount& count,
             const StageCut& cut, AxisVolumes& volumes) {
    if (cut.stages == 1) return;
    const std::int64_t micro = microBatches(job, volumes.degrees);
    const int ways = job.pipeCopies == PipeCopies::kOne ? volumes.degrees[Axis::kTensor] : 1;
    for (int chunk = 0; chunk + 1 < cut.chunks; ++chunk) {
        const std::int64_t bytes =
            count.ofMicroBatch(crossing[static_cast<std::size_t>(chunk)], ways);
        StageVolumes& from = volumes.stages[static_cast<std::size_t>(chunk % cut.stages)];
        StageVolumes& to = volumes.stages[static_cast<std::size_t>((chunk + 1) % cut.stages)];
        const std::int64_t all = std::min(productOrMost(bytes, micro), kMostBytes / 2 / cut.chunks);
        from.toNextBytes += all;
        to.toPreviousBytes += all;
        from.pipeMessages += micro;
        to.pipeMessages += micro;
    }
}

/// Parameters of `stage` that are on another stage too.
std::int64_t sharedParameters(const Model& model, const StageCut& cut, int stage,
                              const Degrees& degrees) {
    std::int64_t shared = 0;
    for (const Layer& layer : model.layers) {
        if (layer.tiedTo.empty()) continue;
        const auto owner = std::find_if(model.layers.begin(), model.layers.end(),
                                        [&](const Layer& o) { return o.name == layer.tiedTo; });
        const int ownerStage = cut.stageOf(static_cast<int>(owner - model.layers.begin()));
        const int userStage = cut.stageOf(static_cast<int>(&layer - model.layers.data()));
        if (ownerStage == userStage || (stage != ownerStage && stage != userStage)) continue;
        shared += tiedParameters(layer, degrees).denseTrained;
    }
    return shared;
}

}  // namespace

std::string_view nameOf(Span span) {
    constexpr std::string_view kNames[] = {"tensor", "context",   "expert",      "data",
                                           "shard",  "replicate", "expert_data", "tied"};
    return kNames[static_cast<std::size_t>(span)];
}

std::int64_t AxisVolumes::ranksOf(Span span) const {
    const std::int64_t context = degrees[Axis::kContext];
    switch (span) {
    case Span::kTensor:
        return degrees[Axis::kTensor];
    case Span::kContext:
        return context;
    case Span::kExpert:
        return degrees[Axis::kExpert];
    case Span::kData:
        return pipelinesOf(degrees) * context;
    case Span::kShard:
        return shard * context;
    case Span::kReplicate:
        return pipelinesOf(degrees) / shard;
    case Span::kExpertData:
        return degrees[Axis::kData] * context;
    case Span::kTied:
        break;
    }
    return degrees[Axis::kPipe] > 1 ? 2 : 1;
}

std::int64_t AxisVolumes::sentBytes(int stage, Span span) const {
    const std::int64_t ranks = ranksOf(span);
    std::int64_t sent = 0;
    for (const Traffic& one : stages[static_cast<std::size_t>(stage)].traffic) {
        if (one.span != span) continue;
        const std::int64_t all = (one.kind == Collective::kAllReduce ? 2 : 1) * one.bytes;
        sent += (all - all / ranks) * one.calls;
    }
    return sent;
}

AxisBytes AxisVolumes::bytesOfAxes(int stage) const {
    const StageVolumes& here = stages[static_cast<std::size_t>(stage)];
    AxisBytes bytes;
    bytes[Axis::kTensor] = sentBytes(stage, Span::kTensor);
    bytes[Axis::kContext] = sentBytes(stage, Span::kContext);
    bytes[Axis::kExpert] = sentBytes(stage, Span::kExpert);
    for (const Span span : {Span::kData, Span::kShard, Span::kReplicate, Span::kExpertData}) {
        bytes[Axis::kData] += sentBytes(stage, span);
    }
    bytes[Axis::kPipe] = std::max(here.toNextBytes, here.toPreviousBytes);
    return bytes;
}

Result<AxisVolumes> volumesOf(const Model& model, const Job& job, const Degrees& degrees,
                              const StageCut& cut) {
    ISTHMUS_TRY(checkJob(job));
    ISTHMUS_TRY(checkDegrees(model, job, degrees));
    ISTHMUS_TRY(checkCut(model, cut));
    if (cut.stages != degrees[Axis::kPipe] || cut.chunks != cut.stages * job.virtualStages) {
        return Status::invalidArgument("cut is wrong: it has " + std::to_string(cut.stages) +
                                       " stages and " + std::to_string(cut.chunks) + " chunks");
    }
    AxisVolumes volumes{degrees, shardWays(job, degrees), {}};
    volumes.stages.resize(static_cast<std::size_t>(cut.stages));
    for (int stage = 0; stage < cut.stages; ++stage) {
        StageCount count(model, job, volumes);
        for (const int layer : cut.layersOfStage(stage)) {
            count.addLayer(model.layers[static_cast<std::size_t>(layer)]);
        }
        for (const LocalParameters& local : parametersOfStage(model, cut, stage, degrees)) {
            count.addState(local);
        }
        count.addTied(sharedParameters(model, cut, stage, degrees));
        volumes.stages[static_cast<std::size_t>(stage)].traffic = count.traffic();
    }
    addPipe(boundaryBytes(model, cut), job, StageCount(model, job, volumes), cut, volumes);
    for (const StageVolumes& stage : volumes.stages) {
        if (isTooMuch(stage)) {
            return Status::invalidArgument("the bytes of a step are more than 2^61 on one rank");
        }
    }
    return volumes;
}

}  // namespace isthmus::scheduler
