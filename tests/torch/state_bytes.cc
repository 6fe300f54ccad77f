// usage: state_bytes PARAMETERS LAYERS f32|bf16 RANKS
// Prints the bytes of weights, gradients and Adam's moments that the scheduler predicts for each of
// RANKS ranks that share all state, everything in one type.

#include <cstdio>
#include <cstdlib>
#include <string>

#include "scheduler/memory/stage_memory.hpp"
#include "scheduler/model/job_json.hpp"

int main(int arguments, char** argument) {
    using namespace isthmus::scheduler;
    if (arguments != 5) return 1;
    const std::string type = argument[3];
    const isthmus::Result<Job> job = jobFromJson(
        R"({"isthmus_job": 1, "global_batch": )" + std::string(argument[4]) +
        R"(, "zero_stage": 3, "master_weights": false, "precision": ")" + type +
        R"(", "gradient_precision": ")" + type + R"(", "optimizer_precision": ")" + type + "\"}");
    if (!job.ok()) {
        std::fprintf(stderr, "%s\n", job.status().what().c_str());
        return 1;
    }
    Model model;
    for (int layer = 0; layer < std::atoi(argument[2]); ++layer) {
        model.layers.emplace_back();
        model.layers.back().name = "linear" + std::to_string(layer);
        model.layers.back().parameters = std::atoll(argument[1]);
    }
    Degrees degrees(1);
    degrees[Axis::kData] = std::atoi(argument[4]);
    const auto memory =
        memoryOf(model, *job, degrees, evenCut(1, 1, static_cast<int>(model.layers.size())));
    if (!memory.ok()) {
        std::fprintf(stderr, "%s\n", memory.status().what().c_str());
        return 1;
    }
    std::printf("%lld\n", static_cast<long long>((*memory)[0].state()));
    return 0;
}
