#include "scheduler/pipeline/trace.hpp"

#include <nlohmann/json.hpp>

namespace isthmus::scheduler {

namespace {

using Json = nlohmann::ordered_json;

std::string_view nameOf(PipelineStep::Kind kind) {
    switch (kind) {
    case PipelineStep::Kind::kForward:
        return "forward";
    case PipelineStep::Kind::kBackward:
        return "backward";
    case PipelineStep::Kind::kInput:
        return "input";
    case PipelineStep::Kind::kWeight:
        return "weight";
    }
    return "?";
}

Json named(int stage, int thread, const char* what, const std::string& name) {
    return {
        {"ph", "M"}, {"name", what}, {"pid", stage}, {"tid", thread}, {"args", {{"name", name}}}};
}

}  // namespace

std::string chromeTrace(const PipelineRun& run, const std::vector<TraceExtra>& extras,
                        const std::vector<std::string>& stages) {
    constexpr double kMicroseconds = 1e6;  // the unit of the format
    Json events = Json::array();
    for (int stage = 0; stage < static_cast<int>(run.busySeconds.size()); ++stage) {
        const std::string name = stages.empty() ? "stage " + std::to_string(stage)
                                                : stages[static_cast<std::size_t>(stage)];
        events.push_back(named(stage, 0, "process_name", name));
        events.push_back(named(stage, 0, "thread_name", "steps"));
        events.push_back(named(stage, 1, "thread_name", "messages"));
        if (!extras.empty()) events.push_back(named(stage, 2, "thread_name", "collectives"));
    }
    for (const PipelineSlice& slice : run.slices) {
        const std::string name(nameOf(slice.step.kind));
        Json args = {{"chunk", slice.step.chunk}, {"micro_batch", slice.step.microBatch}};
        if (slice.isMessage) args["to_stage"] = slice.toStage;
        events.push_back({{"ph", "X"},
                          {"name", name + " " + std::to_string(slice.step.microBatch)},
                          {"cat", slice.isMessage ? "message" : name},
                          {"pid", slice.stage},
                          {"tid", slice.isMessage ? 1 : 0},
                          {"ts", slice.begin * kMicroseconds},
                          {"dur", (slice.end - slice.begin) * kMicroseconds},
                          {"args", std::move(args)}});
    }
    for (const TraceExtra& extra : extras) {
        events.push_back({{"ph", "X"},
                          {"name", extra.name},
                          {"cat", "collective"},
                          {"pid", extra.stage},
                          {"tid", 2},
                          {"ts", extra.begin * kMicroseconds},
                          {"dur", (extra.end - extra.begin) * kMicroseconds}});
    }
    const Json document = {{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}};
    return document.dump();
}

}  // namespace isthmus::scheduler
