#include "scheduler/model/job_json.hpp"

#include <nlohmann/json.hpp>

#include "scheduler/json/field.hpp"
#include "scheduler/model/model_json.hpp"

namespace isthmus::scheduler {

namespace {

using Json = nlohmann::ordered_json;

/// The value of `Choice`, whose values are 0 to `last`, that the text names.
template <typename Choice>
Choice choice(const Field& field, Choice otherwise, Choice last) {
    const std::string text = field.text(std::string(nameOf(otherwise)));
    std::string known;
    for (int value = 0; value <= static_cast<int>(last); ++value) {
        const auto candidate = static_cast<Choice>(value);
        if (text == nameOf(candidate)) return candidate;
        known.append(known.empty() ? "" : ", ").append(nameOf(candidate));
    }
    field.refuse("is none of " + known);
    return otherwise;
}

constexpr int kMostDegree = 1 << 24;
constexpr std::int64_t kMostSamples = std::int64_t{1} << 32;

Degrees degreesIn(const Field& field) {
    Degrees degrees(0);
    if (!field.exists()) return degrees;
    field.hasOnly({"tensor", "context", "expert", "data", "pipe"});
    for (const Axis axis : kAxes) {
        degrees[axis] = static_cast<int>(field[nameOf(axis)].integer(0, kMostDegree, 0));
    }
    return degrees;
}

}  // namespace

Result<Job> jobFromJson(const std::string& text) {
    const Result<nlohmann::json> json = parseJson(text);
    if (!json.ok()) return json.status();
    Field::Reading reading;
    const Field document(*json, reading);
    document.hasOnly(
        {"isthmus_job",    "global_batch",       "micro_batch", "sequence",
         "precision",      "gradient_precision", "optimizer",   "optimizer_precision",
         "master_weights", "recompute",          "zero_stage",  "reshard_after_forward",
         "shard",          "sequence_parallel",  "pipeline",    "virtual_stages",
         "pipe_copies",    "context_method",     "degrees",     "objective"});
    document["isthmus_job"].integer(kModelSchemaVersion, kModelSchemaVersion);
    Job job;
    job.globalBatch = document["global_batch"].integer(1, kMostSamples);
    job.microBatch = document["micro_batch"].integer(1, kMostSamples, 1);
    job.sequence = document["sequence"].integer(0, kMostDegree, 0);
    job.precision = choice(document["precision"], job.precision, Precision::kFloat16);
    job.gradientPrecision =
        choice(document["gradient_precision"], job.gradientPrecision, Precision::kFloat16);
    job.optimizer = choice(document["optimizer"], job.optimizer, Optimizer::kSgd);
    job.optimizerPrecision =
        choice(document["optimizer_precision"], job.optimizerPrecision, Precision::kFloat16);
    job.masterWeights = document["master_weights"].truth(job.masterWeights);
    job.recompute = choice(document["recompute"], job.recompute, Recompute::kFull);
    job.zeroStage = static_cast<int>(document["zero_stage"].integer(0, 3, 0));
    job.reshardAfterForward = document["reshard_after_forward"].truth(job.reshardAfterForward);
    job.shard = static_cast<int>(document["shard"].integer(0, kMostDegree, 0));
    job.sequenceParallel = document["sequence_parallel"].truth(job.sequenceParallel);
    job.order = choice(document["pipeline"], job.order, PipelineOrder::kZeroBubbleH1);
    job.virtualStages = static_cast<int>(document["virtual_stages"].integer(1, 1024, 1));
    job.pipeCopies = choice(document["pipe_copies"], job.pipeCopies, PipeCopies::kEach);
    job.contextMethod =
        choice(document["context_method"], job.contextMethod, ContextMethod::kAllToAll);
    job.fixed = degreesIn(document["degrees"]);
    job.objective = choice(document["objective"], job.objective, Objective::kMemory);
    ISTHMUS_TRY(reading.failure);
    const Status checked = checkJob(job);
    if (!checked.ok()) return Status::configuration(checked.what());
    return job;
}

std::string toJson(const Job& job) {
    Json degrees = Json::object();
    for (const Axis axis : kAxes) {
        if (job.fixed[axis] > 0) degrees[std::string(nameOf(axis))] = job.fixed[axis];
    }
    const Json document = {{"isthmus_job", kModelSchemaVersion},
                           {"global_batch", job.globalBatch},
                           {"micro_batch", job.microBatch},
                           {"sequence", job.sequence},
                           {"precision", nameOf(job.precision)},
                           {"gradient_precision", nameOf(job.gradientPrecision)},
                           {"optimizer", nameOf(job.optimizer)},
                           {"optimizer_precision", nameOf(job.optimizerPrecision)},
                           {"master_weights", job.masterWeights},
                           {"recompute", nameOf(job.recompute)},
                           {"zero_stage", job.zeroStage},
                           {"reshard_after_forward", job.reshardAfterForward},
                           {"shard", job.shard},
                           {"sequence_parallel", job.sequenceParallel},
                           {"pipeline", nameOf(job.order)},
                           {"virtual_stages", job.virtualStages},
                           {"pipe_copies", nameOf(job.pipeCopies)},
                           {"context_method", nameOf(job.contextMethod)},
                           {"degrees", degrees},
                           {"objective", nameOf(job.objective)}};
    return document.dump(2);
}

}  // namespace isthmus::scheduler
