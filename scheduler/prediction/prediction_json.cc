#include "scheduler/prediction/prediction_json.hpp"

#include <nlohmann/json.hpp>

namespace isthmus::scheduler {

namespace {

using Json = nlohmann::ordered_json;

/// A time of a stage and what JSON calls it.
struct TimeName {
    const char* name;
    double StageTime::*member;
};

constexpr TimeName kTimes[] = {
    {"forward_seconds", &StageTime::forward},
    {"backward_seconds", &StageTime::backward},
    {"exposed_forward_seconds", &StageTime::exposedForward},
    {"exposed_tensor_seconds", &StageTime::exposedTensor},
    {"exposed_context_seconds", &StageTime::exposedContext},
    {"exposed_expert_seconds", &StageTime::exposedExpert},
    {"exposed_shard_seconds", &StageTime::exposedShard},
    {"step_data_seconds", &StageTime::stepData},
    {"step_optimizer_seconds", &StageTime::stepOptimizer},
};

/// Times by chunk.
struct ChunkName {
    const char* name;
    std::vector<double> PipelineTimes::*member;
};

constexpr ChunkName kChunks[] = {
    {"forward_seconds", &PipelineTimes::forward}, {"input_seconds", &PipelineTimes::input},
    {"weight_seconds", &PipelineTimes::weight},   {"to_next_seconds", &PipelineTimes::toNext},
    {"latency_seconds", &PipelineTimes::latency},
};

Json jsonOf(const Prediction::Stage& stage, const StageVolumes& volumes, std::size_t number) {
    Json json = {{"stage", number},
                 {"first_layer", stage.firstLayer},
                 {"last_layer", stage.lastLayer},
                 {"layers", stage.layers}};
    for (const TimeName& time : kTimes) json[time.name] = stage.time.*time.member;
    json["memory_bytes"] = stage.memory.total();
    Json& parts = json["memory"];
    for (const MemoryPart& part : kMemoryParts) {
        parts[std::string(part.name)] = stage.memory.*part.member;
    }
    if (stage.deviceBytes > 0) json["device_memory_bytes"] = stage.deviceBytes;
    json["fits"] = stage.fits();
    json["traffic"] = Json::array();
    for (const Traffic& call : volumes.traffic) {
        json["traffic"].push_back({{"group", nameOf(call.span)},
                                   {"kind", nameOf(call.kind)},
                                   {"bytes", call.bytes},
                                   {"calls", call.calls}});
    }
    json["to_next_bytes"] = volumes.toNextBytes;
    json["to_previous_bytes"] = volumes.toPreviousBytes;
    return json;
}

Json jsonOf(const NodeTraffic& traffic) {
    return {{"egress", traffic.egress}, {"ingress", traffic.ingress}};
}

Json jsonOf(const NodeBytes& bytes, const std::string& name) {
    Json json = {{"node", name}, {"all", jsonOf(bytes.all())}};
    for (const Span span : kSpans) {
        if (bytes[span] != NodeTraffic()) json[std::string(nameOf(span))] = jsonOf(bytes[span]);
    }
    if (bytes.pipe != NodeTraffic()) json["pipe"] = jsonOf(bytes.pipe);
    return json;
}

Json pipelineOf(const StepTime& step) {
    Json json = {{"order", nameOf(step.shape.order)},
                 {"virtual_stages", step.shape.virtualStages},
                 {"micro_batches", step.shape.microBatches}};
    for (const ChunkName& chunk : kChunks) json[chunk.name] = step.times.*chunk.member;
    return json;
}

template <typename List>
auto named(const Field& field, const List& all) {
    const std::string name = field.text();
    for (const auto each : all) {
        if (nameOf(each) == name) return each;
    }
    field.refuse("\"" + name + "\" is not known");
    return all[0];
}

Prediction::Stage stageOf(const Field& field) {
    Prediction::Stage stage;
    stage.firstLayer = field["first_layer"].text();
    stage.lastLayer = field["last_layer"].text();
    for (const Field& layer : field["layers"].elements()) {
        stage.layers.push_back(static_cast<int>(layer.integer(0, kMostRanks)));
    }
    for (const TimeName& time : kTimes) stage.time.*time.member = field[time.name].number(0);
    const Field memory = field["memory"];
    for (const MemoryPart& part : kMemoryParts) {
        stage.memory.*part.member = memory[part.name].integer(0, kMostInJson);
    }
    stage.deviceBytes = field["device_memory_bytes"].integer(0, kMostInJson, 0);
    return stage;
}

StageVolumes volumesOf(const Field& stage) {
    constexpr Collective kKinds[] = {Collective::kAllReduce, Collective::kAllGather,
                                     Collective::kReduceScatter, Collective::kAllToAll};
    StageVolumes volumes;
    for (const Field& call : stage["traffic"].elements()) {
        Traffic traffic;
        traffic.span = named(call["group"], kSpans);
        traffic.kind = named(call["kind"], kKinds);
        traffic.bytes = call["bytes"].integer(0, kMostInJson);
        traffic.calls = call["calls"].integer(0, kMostInJson);
        volumes.traffic.push_back(traffic);
    }
    volumes.toNextBytes = stage["to_next_bytes"].integer(0, kMostInJson);
    volumes.toPreviousBytes = stage["to_previous_bytes"].integer(0, kMostInJson);
    return volumes;
}

void readPipeline(const Field& field, int stages, StepTime& step) {
    constexpr PipelineOrder kOrders[] = {PipelineOrder::kGpipe, PipelineOrder::k1f1b,
                                         PipelineOrder::kInterleaved, PipelineOrder::kZeroBubbleH1};
    step.shape.order = named(field["order"], kOrders);
    step.shape.stages = stages;
    step.shape.virtualStages = static_cast<int>(field["virtual_stages"].integer(1, 1 << 20));
    step.shape.microBatches = static_cast<int>(field["micro_batches"].integer(1, 1 << 20));
    for (const ChunkName& chunk : kChunks) {
        std::vector<double>& list = step.times.*chunk.member;
        for (const Field& each : field[chunk.name].elements()) list.push_back(each.number(0));
        if (list.size() == static_cast<std::size_t>(step.shape.chunks())) continue;
        field[chunk.name].refuse("has " + std::to_string(list.size()) + ", the pipeline " +
                                 std::to_string(step.shape.chunks()) + " chunks");
    }
}

}  // namespace

void addPrediction(const Prediction& prediction, const Cluster& cluster, Json& document) {
    document["objective"] = nameOf(prediction.objective);
    document["stages"] = Json::array();
    for (std::size_t at = 0; at < prediction.stages.size(); ++at) {
        document["stages"].push_back(
            jsonOf(prediction.stages[at], prediction.volumes.stages[at], at));
    }
    const NodeCost cost = costOf(prediction.nodes);
    Json& json = document["predicted"];
    json = {{"model", prediction.model},
            {"cut",
             {{"method", prediction.cutMethod},
              {"how", prediction.cutHow},
              {"exact", prediction.isCutExact}}},
            {"megatron_layout", prediction.megatronLayout},
            {"step_seconds", prediction.step.seconds},
            {"pipeline_seconds", prediction.step.pipelineSeconds},
            {"bubble", prediction.step.bubble},
            {"utilization", prediction.step.utilization},
            {"limit", prediction.step.limit},
            {"fullest_stage", prediction.fullestStage()},
            {"fits", prediction.fits()},
            {"max_node_egress", cost.most},
            {"sum_node_egress", cost.sum},
            {"nodes", Json::array()},
            {"pipeline", pipelineOf(prediction.step)},
            {"shard", prediction.volumes.shard},
            {"assumed", prediction.assumed}};
    for (std::size_t node = 0; node < prediction.nodes.size(); ++node) {
        json["nodes"].push_back(jsonOf(prediction.nodes[node], cluster.nodes[node].name));
    }
}

Prediction predictionOf(const Field& document, const Degrees& degrees) {
    constexpr Objective kObjectives[] = {Objective::kCrossNodeBytes, Objective::kStepTime,
                                         Objective::kMemory};
    Prediction answer;
    const Field field = document["predicted"];
    answer.objective = named(document["objective"], kObjectives);
    for (const Field& stage : document["stages"].elements()) {
        answer.stages.push_back(stageOf(stage));
        answer.step.stages.push_back(answer.stages.back().time);
        answer.volumes.stages.push_back(volumesOf(stage));
    }
    answer.volumes.degrees = degrees;
    answer.volumes.shard = field["shard"].integer(1, kMostRanks);
    if (answer.stages.empty()) document["stages"].refuse("has no stage");
    answer.model = field["model"].text();
    answer.cutMethod = field["cut"]["method"].text();
    answer.cutHow = field["cut"]["how"].text();
    answer.isCutExact = field["cut"]["exact"].truth();
    answer.megatronLayout = field["megatron_layout"].text("");
    answer.step.seconds = field["step_seconds"].number(0);
    answer.step.pipelineSeconds = field["pipeline_seconds"].number(0);
    answer.step.bubble = field["bubble"].number(-1);
    answer.step.utilization = field["utilization"].number(0);
    answer.step.limit = field["limit"].text();
    readPipeline(field["pipeline"], static_cast<int>(answer.stages.size()), answer.step);
    for (const Field& each : field["assumed"].elements()) answer.assumed.push_back(each.text());
    return answer;
}

}  // namespace isthmus::scheduler
