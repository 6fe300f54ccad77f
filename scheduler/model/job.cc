#include "scheduler/model/job.hpp"

namespace isthmus::scheduler {

namespace {

/// More than any cluster has; products of degrees stay within an int.
constexpr std::int64_t kMostRanks = 1 << 24;

Status wrong(std::string_view member, std::string_view reason) {
    std::string what(member);
    what.append(" is wrong: ").append(reason);
    return Status::invalidArgument(std::move(what));
}

/// The message names both numbers, for a user knows one of them as a flag of another program.
Status mustDivide(std::string_view what, std::int64_t whole, std::string_view by,
                  std::int64_t degree) {
    if (whole % degree == 0) return {};
    std::string text(what);
    text.append(" ").append(std::to_string(whole)).append(" does not divide by ").append(by);
    text.append(" ").append(std::to_string(degree));
    return Status::invalidArgument(std::move(text));
}

Status checkHeads(const Model& model, const Job& job, const Degrees& degrees) {
    const bool turnsHeads = job.contextMethod == ContextMethod::kAllToAll;
    const std::int64_t context = degrees[Axis::kContext];
    const std::int64_t ways = degrees[Axis::kTensor] * (turnsHeads ? context : 1);
    if (model.heads > 0) {
        ISTHMUS_TRY(mustDivide("heads", model.heads,
                               turnsHeads && context > 1 ? "tensor x context" : "tensor", ways));
    }
    return mustDivide("sequence", model.sequence, "context", context);
}

}  // namespace

std::string_view nameOf(Precision precision) {
    switch (precision) {
    case Precision::kFloat32:
        return "f32";
    case Precision::kBfloat16:
        return "bf16";
    case Precision::kFloat16:
        return "f16";
    }
    return "?";
}

std::string_view nameOf(Optimizer optimizer) {
    switch (optimizer) {
    case Optimizer::kAdam:
        return "adam";
    case Optimizer::kMomentum:
        return "momentum";
    case Optimizer::kSgd:
        return "sgd";
    }
    return "?";
}

std::string_view nameOf(Recompute recompute) {
    switch (recompute) {
    case Recompute::kNone:
        return "none";
    case Recompute::kSelective:
        return "selective";
    case Recompute::kFull:
        return "full";
    }
    return "?";
}

std::string_view nameOf(PipelineOrder order) {
    switch (order) {
    case PipelineOrder::kGpipe:
        return "gpipe";
    case PipelineOrder::k1f1b:
        return "1f1b";
    case PipelineOrder::kInterleaved:
        return "interleaved";
    case PipelineOrder::kZeroBubbleH1:
        return "zb-h1";
    }
    return "?";
}

std::string_view nameOf(PipeCopies copies) {
    return copies == PipeCopies::kOne ? "one" : "each";
}

std::string_view nameOf(ContextMethod method) {
    return method == ContextMethod::kRing ? "ring" : "all_to_all";
}

std::string_view nameOf(Objective objective) {
    switch (objective) {
    case Objective::kCrossNodeBytes:
        return "cross_node_bytes";
    case Objective::kStepTime:
        return "step_time";
    case Objective::kMemory:
        return "memory";
    }
    return "?";
}

int bytesOf(Precision precision) {
    return precision == Precision::kFloat32 ? 4 : 2;
}

int optimizerBytesPerParameter(const Job& job) {
    // Rajbhandari et al., ZeRO, arXiv 1910.02054, section 3.1: two moments and the master weight.
    constexpr int kMasterBytes = 4;
    const int master = job.masterWeights && job.precision != Precision::kFloat32 ? kMasterBytes : 0;
    const int moment = bytesOf(job.optimizerPrecision);
    switch (job.optimizer) {
    case Optimizer::kAdam:
        return master + 2 * moment;
    case Optimizer::kMomentum:
        return master + moment;
    case Optimizer::kSgd:
        break;
    }
    return master;
}

Status checkJob(const Job& job) {
    if (job.globalBatch < 1) return wrong("global_batch", "it is below 1");
    if (job.microBatch < 1) return wrong("micro_batch", "it is below 1");
    if (job.globalBatch % job.microBatch != 0) {
        return wrong("micro_batch",
                     "it does not divide global_batch " + std::to_string(job.globalBatch));
    }
    if (job.zeroStage < 0 || job.zeroStage > 3) return wrong("zero_stage", "it is not 0 to 3");
    if (job.virtualStages < 1) return wrong("virtual_stages", "it is below 1");
    const bool isInterleaved = job.order == PipelineOrder::kInterleaved;
    if (!isInterleaved && job.virtualStages > 1) {
        return wrong("virtual_stages", "only the order interleaved has more than 1");
    }
    if (job.shard < 0 || job.shard > kMostRanks) return wrong("shard", "it is not 0 to 2^24");
    if (job.sequence < 0) return wrong("sequence", "it is negative");
    for (const Axis axis : kAxes) {
        if (job.fixed[axis] >= 0 && job.fixed[axis] <= kMostRanks) continue;
        return wrong(nameOf(axis), "it is not 0 to 2^24").within("degrees");
    }
    return {};
}

Status checkDegrees(const Model& model, const Job& job, const Degrees& degrees) {
    std::int64_t ranks = 1;
    for (const Axis axis : kAxes) {
        if (degrees[axis] < 1) return wrong(nameOf(axis), "it is below 1");
        if (degrees[axis] > kMostRanks / ranks) return wrong("degrees", "more than 2^24 ranks");
        ranks *= degrees[axis];
        if (job.fixed[axis] == 0 || job.fixed[axis] == degrees[axis]) continue;
        return wrong(nameOf(axis), "the job fixes it at " + std::to_string(job.fixed[axis]));
    }
    if (job.sequence != 0 && job.sequence != model.sequence) {
        return wrong("sequence", "the model is made for " + std::to_string(model.sequence));
    }
    ISTHMUS_TRY(checkHeads(model, job, degrees));
    ISTHMUS_TRY(mustDivide("global_batch / micro_batch", job.globalBatch / job.microBatch,
                           degrees[Axis::kExpert] > 1 ? "data x expert" : "data",
                           pipelinesOf(degrees)));
    ISTHMUS_TRY(
        mustDivide("data x expert", pipelinesOf(degrees), "shard", shardWays(job, degrees)));
    bool hasExperts = false;
    for (const Layer& layer : model.layers) {
        if (layer.experts == 0) continue;
        hasExperts = true;
        ISTHMUS_TRY(mustDivide("experts of " + layer.name, layer.experts, "expert",
                               degrees[Axis::kExpert]));
    }
    if (!hasExperts && degrees[Axis::kExpert] > 1) {
        return wrong("expert", "the model has no experts");
    }
    const std::int64_t chunks = std::int64_t{degrees[Axis::kPipe]} * job.virtualStages;
    const auto layers = static_cast<std::int64_t>(model.layers.size());
    if (chunks > layers) {
        return Status::invalidArgument("layers " + std::to_string(layers) + " are fewer than the " +
                                       std::to_string(chunks) + " chunks of the pipeline");
    }
    if (job.order == PipelineOrder::kInterleaved && job.virtualStages > 1) {
        return mustDivide("micro-batches", microBatches(job, degrees), "pipe", degrees[Axis::kPipe])
            .within("interleaved");
    }
    return {};
}

std::int64_t pipelinesOf(const Degrees& degrees) {
    return std::int64_t{degrees[Axis::kData]} * degrees[Axis::kExpert];
}

std::int64_t microBatches(const Job& job, const Degrees& degrees) {
    return job.globalBatch / (job.microBatch * pipelinesOf(degrees));
}

std::int64_t shardWays(const Job& job, const Degrees& degrees) {
    return job.shard == 0 ? pipelinesOf(degrees) : job.shard;
}

}  // namespace isthmus::scheduler
