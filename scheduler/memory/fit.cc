#include "scheduler/memory/fit.hpp"

#include <algorithm>

#include "scheduler/model/volumes.hpp"

namespace isthmus::scheduler {

namespace {

/// Operations that take as long as one byte: A100's 312 Tflop/s of bf16 over its 300 GB/s of NVLink
/// each way (tensor groups), or over 25 GB/s of one 200 Gbit/s card (all others). NVIDIA A100
/// datasheet; they only rank changes.
constexpr double kOperationsPerTensorByte = 312e12 / 300e9;
constexpr double kOperationsPerByte = 312e12 / 25e9;

/// What one step costs the busiest stage, in operations; idle time of a pipeline included.
double workOf(const Model& model, const Job& job, const AxisVolumes& volumes, const StageCut& cut) {
    const double micro = static_cast<double>(microBatches(job, volumes.degrees));
    double most = 0;
    for (int stage = 0; stage < cut.stages; ++stage) {
        double operations = 0;
        for (const int place : cut.layersOfStage(stage)) {
            const Layer& layer = model.layers[static_cast<std::size_t>(place)];
            operations += static_cast<double>(layer.forwardFlops + layer.backwardFlops);
            if (job.recompute == Recompute::kSelective) {
                operations += static_cast<double>(layer.recomputedFlops);
            } else if (job.recompute == Recompute::kFull && layer.checkpointed) {
                operations += static_cast<double>(layer.forwardFlops);
            }
        }
        operations *= micro * static_cast<double>(job.microBatch) /
                      (volumes.degrees[Axis::kTensor] * volumes.degrees[Axis::kContext]);
        const AxisBytes bytes = volumes.bytesOfAxes(stage);
        for (const Axis axis : kAxes) {
            operations += static_cast<double>(bytes[axis]) *
                          (axis == Axis::kTensor ? kOperationsPerTensorByte : kOperationsPerByte);
        }
        most = std::max(most, operations);
    }
    return most * (1 + (cut.stages - 1) / (micro * job.virtualStages));
}

/// The fullest stage.
FitAnswer compare(const std::vector<StageMemory>& stages,
                  const std::vector<std::int64_t>& deviceBytes) {
    FitAnswer answer;
    std::int64_t worst = INT64_MIN;
    for (std::size_t stage = 0; stage < stages.size(); ++stage) {
        const std::int64_t over = stages[stage].total() - deviceBytes[stage];
        if (over <= worst) continue;
        worst = over;
        answer.stage = static_cast<int>(stage);
        answer.memory = stages[stage];
    }
    answer.fits = worst <= 0;
    answer.missingBytes = std::max<std::int64_t>(worst, 0);
    const MemoryPart* largest = &kMemoryParts[0];
    for (const MemoryPart& part : kMemoryParts) {
        if (answer.memory.*part.member > answer.memory.*largest->member) largest = &part;
    }
    answer.largest = largest->name;
    return answer;
}

struct Way {
    std::string text;
    Job job;
    Degrees degrees;

    Way with(const std::string& what) const {
        return {text.empty() ? what : text + ", " + what, job, degrees};
    }
};

using Ways = std::vector<Way>;

/// Each of the following adds to a way the ways that differ from it in one thing.
void addRecompute(const Way& way, Ways& ways) {
    for (const Recompute recompute : {Recompute::kSelective, Recompute::kFull}) {
        if (recompute <= way.job.recompute) continue;
        ways.push_back(way.with("recompute " + std::string(nameOf(recompute))));
        ways.back().job.recompute = recompute;
    }
}

void addSequenceParallel(const Way& way, Ways& ways) {
    if (way.job.sequenceParallel || way.degrees[Axis::kTensor] == 1) return;
    ways.push_back(way.with("sequence parallel"));
    ways.back().job.sequenceParallel = true;
}

void addZero(const Way& way, Ways& ways) {
    if (pipelinesOf(way.degrees) * way.degrees[Axis::kContext] == 1) return;
    for (int stage = way.job.zeroStage + 1; stage <= 3; ++stage) {
        ways.push_back(way.with("zero stage " + std::to_string(stage)));
        ways.back().job.zeroStage = stage;
    }
}

void addMicroBatch(const Way& way, Ways& ways) {
    for (std::int64_t samples = way.job.microBatch; samples % 2 == 0;) {
        samples /= 2;
        ways.push_back(way.with("micro-batch " + std::to_string(samples)));
        ways.back().job.microBatch = samples;
    }
}

void addOrder(const Way& way, Ways& ways) {
    if (way.job.order != PipelineOrder::kGpipe && way.job.order != PipelineOrder::kInterleaved) {
        return;
    }
    ways.push_back(way.with("pipeline 1f1b"));
    ways.back().job.order = PipelineOrder::k1f1b;
    ways.back().job.virtualStages = 1;
}

void addDegrees(const Way& way, Ways& ways) {
    if (way.job.fixed[Axis::kData] != 0) return;
    for (const Axis axis : {Axis::kPipe, Axis::kTensor}) {
        if (way.job.fixed[axis] != 0) continue;
        Degrees degrees = way.degrees;
        while (degrees[Axis::kData] % 2 == 0) {
            degrees[Axis::kData] /= 2;
            degrees[axis] *= 2;
            ways.push_back(way.with(std::string(nameOf(axis)) + " " +
                                    std::to_string(degrees[axis]) + ", data " +
                                    std::to_string(degrees[Axis::kData])));
            ways.back().degrees = degrees;
        }
    }
}

/// Everything that one change of each kind makes together.
Ways allWays(const Job& job, const Degrees& degrees) {
    Ways ways = {{"", job, degrees}};
    for (const auto add :
         {addRecompute, addSequenceParallel, addZero, addMicroBatch, addOrder, addDegrees}) {
        const Ways before = ways;
        for (const Way& way : before) add(way, ways);
    }
    ways.erase(ways.begin());
    return ways;
}

StageCut cutFor(const Way& way, const Model& model, const StageCut& cut) {
    const int pipe = way.degrees[Axis::kPipe];
    if (pipe == cut.stages && pipe * way.job.virtualStages == cut.chunks) return cut;
    return evenCut(pipe, way.job.virtualStages, static_cast<int>(model.layers.size()));
}

std::string gibibytes(std::int64_t bytes) {
    const std::int64_t tenths = (bytes >> 20) * 10 / 1024;
    return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GiB";
}

}  // namespace

std::string FitAnswer::text() const {
    if (fits)
        return "fits; the fullest stage " + std::to_string(stage) + " needs " +
               gibibytes(memory.total());
    std::string what = "stage " + std::to_string(stage) + " needs " + gibibytes(memory.total()) +
                       ", " + gibibytes(missingBytes) +
                       " more than there is; the largest part is " + largest;
    return what + (cheapest ? "; the cheapest change that fits: " + cheapest->text
                            : "; no change of the ones known makes it fit");
}

Result<FitAnswer> fitModel(const Model& model, const Job& job, const Degrees& degrees,
                           const StageCut& cut, const std::vector<std::int64_t>& deviceBytes) {
    const Result<std::vector<StageMemory>> stages = memoryOf(model, job, degrees, cut);
    if (!stages.ok()) return stages.status();
    if (deviceBytes.size() != stages->size()) {
        return Status::invalidArgument("memory of " + std::to_string(deviceBytes.size()) +
                                       " devices for " + std::to_string(stages->size()) +
                                       " stages");
    }
    FitAnswer answer = compare(*stages, deviceBytes);
    if (answer.fits) return answer;
    const Result<AxisVolumes> volumes = volumesOf(model, job, degrees, cut);
    if (!volumes.ok()) return volumes.status();
    const double work = workOf(model, job, *volumes, cut);
    // Where stages move, any of them may meet the smallest device.
    const std::int64_t smallest = *std::min_element(deviceBytes.begin(), deviceBytes.end());
    for (const Way& way : allWays(job, degrees)) {
        const StageCut changed = cutFor(way, model, cut);
        const Result<std::vector<StageMemory>> there =
            memoryOf(model, way.job, way.degrees, changed);
        if (!there.ok()) continue;  // it does not divide
        const bool isSame = there->size() == deviceBytes.size();
        const FitAnswer compared = compare(
            *there, isSame ? deviceBytes : std::vector<std::int64_t>(there->size(), smallest));
        if (!compared.fits) continue;
        const Result<AxisVolumes> moved = volumesOf(model, way.job, way.degrees, changed);
        if (!moved.ok()) continue;
        const double ratio = workOf(model, way.job, *moved, changed) / work;
        const bool isCheaper = !answer.cheapest || ratio < answer.cheapest->costRatio * (1 - 1e-12);
        if (!isCheaper) continue;
        answer.cheapest =
            FitChange{way.text, way.job, way.degrees, changed, compared.memory.total(), ratio};
    }
    return answer;
}

}  // namespace isthmus::scheduler
