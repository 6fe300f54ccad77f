#include "tools/cli/place_model.hpp"

#include "scheduler/json/field.hpp"
#include "scheduler/model/generate.hpp"
#include "scheduler/model/job_json.hpp"
#include "scheduler/model/model_json.hpp"

namespace isthmus::cli {
namespace {

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

}  // namespace isthmus::cli
