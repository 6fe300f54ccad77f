#include "scheduler/prediction/rivals.hpp"

#include <algorithm>

#include "scheduler/placement/shape.hpp"
#include "scheduler/search/orders.hpp"

namespace isthmus::scheduler {

namespace {

Result<Prediction> predicted(const ModelQuestion& question, const Job& job,
                             const Degrees& degrees) {
    const Model& model = question.model;
    const bool isTransformer =
        std::any_of(model.layers.begin(), model.layers.end(),
                    [](const Layer& layer) { return layer.type == "transformer"; });
    Result<ModelCut> cut =
        cutModel(model, job, degrees, isTransformer ? "type:transformer" : "uniform");
    if (!cut.ok()) return cut.status();
    const std::vector<int> seats = fillInTurn(
        sequenceOf(Shape(degrees), namedOrders().front().fastestFirst), question.cluster.sizes());
    Result<Prediction> answer = predict(model, job, degrees, *cut, question.cluster, seats);
    if (answer.ok()) answer->cutMethod = isTransformer ? "type:transformer" : "uniform";
    return answer;
}

}  // namespace

std::vector<Rival> rivalsOf(const ModelQuestion& question, const std::vector<Degrees>& degrees) {
    const int devices = question.cluster.ranks();
    std::vector<Rival> rivals;
    const auto add = [&](std::string name, const Degrees& of, const Job& job) {
        Rival rival{std::move(name), of, job, "", {}};
        if (ranksOf(of) != devices) {
            rival.impossible = textOf(of) + " is " + std::to_string(ranksOf(of)) +
                               " ranks, the cluster has " + std::to_string(devices);
        } else if (Result<Prediction> answer = predicted(question, job, of); answer.ok()) {
            rival.prediction = std::move(*answer);
        } else {
            rival.impossible = answer.status().what();
        }
        rivals.push_back(std::move(rival));
    };
    Degrees data(1);
    data[Axis::kData] = devices;
    Job job = question.job;
    job.sequenceParallel = false;
    job.order = PipelineOrder::k1f1b;
    job.virtualStages = 1;
    job.shard = 0;
    for (int stage = 0; stage <= 3; ++stage) {
        job.zeroStage = stage;
        add(stage == 0 ? "plain data parallelism" : "ZeRO stage " + std::to_string(stage), data,
            job);
    }
    const std::vector<int> sizes = question.cluster.sizes();
    const bool areAlike =
        std::all_of(sizes.begin(), sizes.end(), [&](int size) { return size == sizes.front(); });
    if (areAlike && sizes.size() > 1 && sizes.front() > 1) {
        job.shard = sizes.front();
        add("HSDP: ZeRO stage 3 in a node", data, job);
    }
    for (const Degrees& each : degrees) add("Megatron " + textOf(each), each, question.job);
    return rivals;
}

}  // namespace isthmus::scheduler
