#include "tools/cli/place_model.hpp"

#include <algorithm>

#include "scheduler/json/field.hpp"
#include "scheduler/memory/fit.hpp"
#include "scheduler/model/generate.hpp"
#include "scheduler/model/job_json.hpp"
#include "scheduler/model/model_json.hpp"
#include "scheduler/model/stage_cut.hpp"
#include "scheduler/model/volumes.hpp"

namespace isthmus::cli {
namespace {

using scheduler::Axis;
using scheduler::AxisBytes;
using scheduler::AxisVolumes;
using scheduler::Degrees;

/// scheduler.md 1.1: h 5120, L 40, P 12.8 G, sequence 256; GPT-2's vocabulary.
scheduler::Model gpt13b() {
    scheduler::TransformerShape shape;
    shape.layers = 40;
    shape.hidden = 5120;
    shape.heads = 40;
    shape.vocabulary = 51'200;  // 50,257, filled up as Megatron does
    shape.sequence = 256;
    return scheduler::gptModel(shape);
}

scheduler::Job announcedJob() {
    scheduler::Job job;
    job.globalBatch = 1536;
    job.precision = scheduler::Precision::kFloat16;
    job.gradientPrecision = scheduler::Precision::kFloat16;
    return job;
}

scheduler::StageCut cutOf(const ModelAndJob& what, const Degrees& degrees) {
    return scheduler::evenCut(degrees[Axis::kPipe], what.job.virtualStages,
                              static_cast<int>(what.model.layers.size()));
}

Result<AxisVolumes> volumesAt(const ModelAndJob& what, const Degrees& degrees) {
    ISTHMUS_TRY(scheduler::checkDegrees(what.model, what.job, degrees));
    return scheduler::volumesOf(what.model, what.job, degrees, cutOf(what, degrees));
}

bool fits(const ModelAndJob& what, std::int64_t deviceBytes, const Degrees& degrees) {
    if (deviceBytes == 0) return true;
    const auto stages = scheduler::memoryOf(what.model, what.job, degrees, cutOf(what, degrees));
    return stages.ok() &&
           std::all_of(stages->begin(), stages->end(), [&](const scheduler::StageMemory& stage) {
               return stage.total() <= deviceBytes;
           });
}

}  // namespace

Result<ModelAndJob> modelAndJobOf(const std::string& model, const std::string& job) {
    ModelAndJob what;
    const bool isAnnounced = model == "gpt-13b";
    if (job.empty() && !isAnnounced) {
        return Status::invalidArgument(
            "--model " + model + " is a file of yours, which wants --job; known by name: gpt-13b");
    }
    what.job = announcedJob();
    if (!job.empty()) {
        const Result<std::string> text = scheduler::textOfFile(job);
        if (!text.ok()) return text.status();
        Result<scheduler::Job> read = scheduler::jobFromJson(*text);
        if (!read.ok()) return read.status().within(job);
        what.job = std::move(*read);
    }
    if (isAnnounced) {
        what.model = gpt13b();
        return what;
    }
    const Result<std::string> text = scheduler::textOfFile(model);
    if (!text.ok()) return text.status();
    Result<scheduler::Model> read = scheduler::modelFromJson(*text, what.job);
    if (!read.ok()) return read.status().within(model);
    what.model = std::move(*read);
    return what;
}

scheduler::VolumesOf volumesOfModel(ModelAndJob what, std::int64_t deviceBytes) {
    return
        [what = std::move(what), deviceBytes](const Degrees& degrees) -> std::optional<AxisBytes> {
            const Result<AxisVolumes> volumes = volumesAt(what, degrees);
            if (!volumes.ok() || !fits(what, deviceBytes, degrees)) return std::nullopt;
            AxisBytes most;
            for (int stage = 0; stage < degrees[Axis::kPipe]; ++stage) {
                const AxisBytes bytes = volumes->bytesOfAxes(stage);
                for (const Axis axis : scheduler::kAxes) {
                    most[axis] = std::max(most[axis], degrees[axis] > 1 ? bytes[axis] : 0);
                }
            }
            return most;
        };
}

Status whyNot(const ModelAndJob& what, std::int64_t deviceBytes, const Degrees& degrees) {
    const Result<AxisVolumes> volumes = volumesAt(what, degrees);
    if (!volumes.ok()) return volumes.status();
    if (fits(what, deviceBytes, degrees)) return {};
    const Result<scheduler::FitAnswer> fit = scheduler::fitModel(
        what.model, what.job, degrees, cutOf(what, degrees),
        std::vector<std::int64_t>(static_cast<std::size_t>(degrees[Axis::kPipe]), deviceBytes));
    return fit.ok() ? Status::unsupported(fit->text()) : fit.status();
}

}  // namespace isthmus::cli
