#include "scheduler/pipeline/simulate.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace isthmus::scheduler {

namespace {

using Kind = PipelineStep::Kind;

constexpr double kNever = -1;

/// One run: each stage goes through its steps; one that waits is taken up again when what it waits
/// for has been made.
class Simulation {
public:
    Simulation(const PipelineShape& shape, const PipelineTimes& times, Slices slices)
        : shape_(shape), times_(times), keepsSlices_(slices == Slices::kAll) {
        const auto passes =
            static_cast<std::size_t>(shape.chunks()) * static_cast<std::size_t>(shape.microBatches);
        forwardInput_.assign(passes, kNever);
        forwardDone_.assign(passes, kNever);
        gradientInput_.assign(passes, kNever);
        const auto stages = static_cast<std::size_t>(shape.stages);
        for (int stage = 0; stage < shape.stages; ++stage) steps_.push_back(stepsOf(shape, stage));
        next_.assign(stages, 0);
        free_.assign(stages, 0);
        linkFree_.assign(2 * stages, 0);
        run_.busySeconds.assign(stages, 0);
        for (int microBatch = 0; microBatch < shape.microBatches; ++microBatch) {
            forwardInput_[index(0, microBatch)] = 0;
        }
    }

    Result<PipelineRun> run() {
        bool hasMoved = true;
        while (hasMoved) {
            hasMoved = false;
            // Up, then down: forward passes travel one way, gradients the other.
            for (int stage = 0; stage < shape_.stages; ++stage) hasMoved |= advance(stage);
            for (int stage = shape_.stages; stage-- > 0;) hasMoved |= advance(stage);
        }
        for (std::size_t stage = 0; stage < steps_.size(); ++stage) {
            if (next_[stage] == steps_[stage].size()) continue;
            return Status::internal("pipeline: stage " + std::to_string(stage) + " waits for ever");
        }
        run_.seconds = *std::max_element(free_.begin(), free_.end());
        std::stable_sort(run_.slices.begin(), run_.slices.end(),
                         [](const PipelineSlice& left, const PipelineSlice& right) {
                             return left.begin < right.begin;
                         });
        return std::move(run_);
    }

private:
    std::size_t index(int chunk, int microBatch) const {
        return static_cast<std::size_t>(chunk) * static_cast<std::size_t>(shape_.microBatches) +
               static_cast<std::size_t>(microBatch);
    }

    /// When the inputs of `step` are there, or kNever.
    double readyAt(const PipelineStep& step) const {
        const std::size_t pass = index(step.chunk, step.microBatch);
        if (step.kind == Kind::kForward) return forwardInput_[pass];
        if (step.kind == Kind::kWeight) return forwardDone_[pass];  // its input step came earlier
        if (step.chunk + 1 == shape_.chunks()) return forwardDone_[pass];
        return gradientInput_[pass];
    }

    double secondsOf(const PipelineStep& step) const {
        const auto chunk = static_cast<std::size_t>(step.chunk);
        switch (step.kind) {
        case Kind::kForward:
            return times_.forward[chunk];
        case Kind::kInput:
            return times_.input[chunk];
        case Kind::kWeight:
            return times_.weight[chunk];
        case Kind::kBackward:
            break;
        }
        return times_.input[chunk] + times_.weight[chunk];
    }

    bool advance(int stage) {
        const auto place = static_cast<std::size_t>(stage);
        bool hasMoved = false;
        while (next_[place] < steps_[place].size()) {
            const PipelineStep& step = steps_[place][next_[place]];
            const double ready = readyAt(step);
            if (ready == kNever) break;
            const double begin = std::max(ready, free_[place]);
            const double end = begin + secondsOf(step);
            free_[place] = end;
            run_.busySeconds[place] += end - begin;
            if (keepsSlices_) run_.slices.push_back({step, false, stage, stage, begin, end});
            finish(stage, step, end);
            ++next_[place];
            hasMoved = true;
        }
        return hasMoved;
    }

    /// Hands on what a step made.
    void finish(int stage, const PipelineStep& step, double end) {
        const std::size_t pass = index(step.chunk, step.microBatch);
        if (step.kind == Kind::kWeight) return;
        if (step.kind == Kind::kForward) {
            forwardDone_[pass] = end;
            if (step.chunk + 1 == shape_.chunks()) return;
            forwardInput_[index(step.chunk + 1, step.microBatch)] =
                arrival(stage, step, step.chunk + 1, end);
        } else if (step.chunk > 0) {
            gradientInput_[index(step.chunk - 1, step.microBatch)] =
                arrival(stage, step, step.chunk - 1, end);
        }
    }

    double arrival(int stage, const PipelineStep& step, int toChunk, double made) {
        const int toStage = toChunk % shape_.stages;
        if (toStage == stage) return made;
        const auto boundary = static_cast<std::size_t>(std::min(step.chunk, toChunk));
        // Of two stages, the one after and the one before are the same: one link, one queue.
        const bool isUp = toStage == (stage + 1) % shape_.stages;
        double& linkFree = linkFree_[2 * static_cast<std::size_t>(stage) + (isUp ? 1 : 0)];
        const double begin = std::max(made, linkFree);
        linkFree = begin + times_.toNext[boundary];
        const double end = linkFree + times_.latency[boundary];
        if (times_.isBlocking) free_[static_cast<std::size_t>(stage)] = linkFree;
        if (keepsSlices_) run_.slices.push_back({step, true, stage, toStage, begin, end});
        return end;
    }

    const PipelineShape& shape_;
    const PipelineTimes& times_;
    const bool keepsSlices_;
    std::vector<double> forwardInput_;  ///< by pass: when its input is on the stage
    std::vector<double> forwardDone_;
    std::vector<double> gradientInput_;
    std::vector<std::vector<PipelineStep>> steps_;
    std::vector<std::size_t> next_;
    std::vector<double> free_;
    std::vector<double> linkFree_;
    PipelineRun run_;
};

bool isTimes(const std::vector<double>& list, int chunks) {
    return static_cast<int>(list.size()) == chunks &&
           std::all_of(list.begin(), list.end(),
                       [](double value) { return std::isfinite(value) && value >= 0; });
}

}  // namespace

PipelineTimes PipelineTimes::uniform(int chunks, double forward, double input, double weight,
                                     double toNext) {
    const auto places = static_cast<std::size_t>(chunks);
    PipelineTimes times;
    times.forward.assign(places, forward);
    times.input.assign(places, input);
    times.weight.assign(places, weight);
    times.toNext.assign(places, toNext);
    times.latency.assign(places, 0);
    return times;
}

double PipelineRun::bubble() const {
    const double busy = std::accumulate(busySeconds.begin(), busySeconds.end(), 0.0);
    const double all = seconds * static_cast<double>(busySeconds.size());
    return busy > 0 ? (all - busy) / busy : 0;
}

Result<PipelineRun> simulatePipeline(const PipelineShape& shape, const PipelineTimes& times,
                                     Slices slices) {
    ISTHMUS_TRY(checkShape(shape));
    for (const auto* list :
         {&times.forward, &times.input, &times.weight, &times.toNext, &times.latency}) {
        if (isTimes(*list, shape.chunks())) continue;
        return Status::invalidArgument("pipeline: each of its times is a list of " +
                                       std::to_string(shape.chunks()) +
                                       " numbers that are not negative");
    }
    return Simulation(shape, times, slices).run();
}

}  // namespace isthmus::scheduler
