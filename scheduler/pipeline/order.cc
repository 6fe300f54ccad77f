#include "scheduler/pipeline/order.hpp"

#include <algorithm>

namespace isthmus::scheduler {

namespace {

using Kind = PipelineStep::Kind;

/// The n-th forward or backward pass of a stage, of all its chunks.
class Passes {
public:
    Passes(const PipelineShape& shape, int stage) : shape_(shape), stage_(stage) {}

    int all() const { return shape_.microBatches * shape_.virtualStages; }

    PipelineStep forward(int turn) const { return step(Kind::kForward, turn, false); }
    PipelineStep backward(int turn, Kind kind) const { return step(kind, turn, true); }

private:
    /// Micro-batches go by as many as there are stages: all of these through one chunk, then
    /// through the next (backward: the one before).
    PipelineStep step(Kind kind, int turn, bool isBackward) const {
        if (shape_.virtualStages == 1) return {kind, stage_, turn};
        const int round = turn / shape_.chunks();
        const int within = turn % shape_.chunks();
        const int nth = within / shape_.stages;
        const int layer = isBackward ? shape_.virtualStages - 1 - nth : nth;
        return {kind, layer * shape_.stages + stage_,
                round * shape_.stages + within % shape_.stages};
    }

    const PipelineShape& shape_;
    const int stage_;
};

/// Forward passes before the first backward one of the same stage may follow each of them.
int warmUp(const PipelineShape& shape, int stage) {
    const int behind = shape.stages - 1 - stage;
    if (shape.virtualStages == 1) return behind;
    return 2 * behind + (shape.virtualStages - 1) * shape.stages;
}

std::vector<PipelineStep> forwardsFirst(const Passes& passes) {
    std::vector<PipelineStep> steps;
    for (int turn = 0; turn < passes.all(); ++turn) steps.push_back(passes.forward(turn));
    for (int turn = 0; turn < passes.all(); ++turn) {
        steps.push_back(passes.backward(turn, Kind::kBackward));
    }
    return steps;
}

std::vector<PipelineStep> alternating(const Passes& passes, int warmUp) {
    std::vector<PipelineStep> steps;
    const int ahead = std::min(warmUp, passes.all());
    for (int turn = 0; turn < ahead; ++turn) steps.push_back(passes.forward(turn));
    for (int turn = 0; turn < passes.all(); ++turn) {
        if (ahead + turn < passes.all()) steps.push_back(passes.forward(ahead + turn));
        steps.push_back(passes.backward(turn, Kind::kBackward));
    }
    return steps;
}

/// As alternating, but the gradients of the weights wait: a later stage lets as many wait as there
/// are stages before it, which keeps its activations at the first stage's number.
std::vector<PipelineStep> weightsLater(const Passes& passes, int warmUp, int waiting) {
    std::vector<PipelineStep> steps;
    const int ahead = std::min(warmUp, passes.all());
    for (int turn = 0; turn < ahead; ++turn) steps.push_back(passes.forward(turn));
    int weights = 0;
    for (int turn = 0; turn < passes.all(); ++turn) {
        if (ahead + turn < passes.all()) steps.push_back(passes.forward(ahead + turn));
        steps.push_back(passes.backward(turn, Kind::kInput));
        if (turn + 1 - weights > waiting) {
            steps.push_back(passes.backward(weights++, Kind::kWeight));
        }
    }
    while (weights < passes.all()) steps.push_back(passes.backward(weights++, Kind::kWeight));
    return steps;
}

}  // namespace

Status checkShape(const PipelineShape& shape) {
    constexpr std::int64_t kMostSteps = 5'000'000;  // of all stages: 250 MB and a second
    if (shape.stages < 1 || shape.virtualStages < 1 || shape.microBatches < 1) {
        return Status::invalidArgument("a pipeline has at least one stage, chunk and micro-batch");
    }
    if (std::int64_t{shape.stages} * shape.virtualStages * shape.microBatches > kMostSteps) {
        return Status::invalidArgument("a pipeline of more than 5000000 passes");
    }
    if (shape.virtualStages == 1) return {};
    if (shape.order != PipelineOrder::kInterleaved) {
        return Status::invalidArgument("only an interleaved pipeline has several chunks a stage");
    }
    if (shape.microBatches % shape.stages != 0) {
        return Status::invalidArgument("interleaved: " + std::to_string(shape.microBatches) +
                                       " micro-batches do not divide by " +
                                       std::to_string(shape.stages) + " stages");
    }
    return {};
}

std::vector<PipelineStep> stepsOf(const PipelineShape& shape, int stage) {
    const Passes passes(shape, stage);
    switch (shape.order) {
    case PipelineOrder::kGpipe:
        return forwardsFirst(passes);
    case PipelineOrder::k1f1b:
    case PipelineOrder::kInterleaved:
        return alternating(passes, warmUp(shape, stage));
    case PipelineOrder::kZeroBubbleH1:
        break;
    }
    return weightsLater(passes, warmUp(shape, stage), stage);
}

std::int64_t mostKept(const PipelineShape& shape, int stage,
                      const std::vector<std::int64_t>& bytesOfChunk) {
    std::int64_t kept = 0;
    std::int64_t most = 0;
    for (const PipelineStep& step : stepsOf(shape, stage)) {
        const std::int64_t bytes = bytesOfChunk[static_cast<std::size_t>(step.chunk)];
        if (step.kind == Kind::kForward) {
            kept = bytes > kMostBytes - kept ? kMostBytes : kept + bytes;
            most = std::max(most, kept);
        }
        if (kept == kMostBytes) return kMostBytes;
        if (step.kind == Kind::kBackward || step.kind == Kind::kWeight) kept -= bytes;
    }
    return most;
}

std::int64_t mostInFlight(const PipelineShape& shape, int stage) {
    return mostKept(shape, stage,
                    std::vector<std::int64_t>(static_cast<std::size_t>(shape.chunks()), 1));
}

}  // namespace isthmus::scheduler
