#include "scheduler/prediction/prediction.hpp"

#include <algorithm>

#include "scheduler/cut/megatron_layout.hpp"

namespace isthmus::scheduler {

int Prediction::fullestStage() const {
    const auto spare = [](const Stage& stage) { return stage.deviceBytes - stage.memory.total(); };
    const auto fullest = std::min_element(
        stages.begin(), stages.end(),
        [&](const Stage& one, const Stage& other) { return spare(one) < spare(other); });
    return static_cast<int>(fullest - stages.begin());
}

bool Prediction::fits() const {
    return std::all_of(stages.begin(), stages.end(), [](const Stage& each) { return each.fits(); });
}

AxisBytes mostOfStages(const AxisVolumes& volumes) {
    AxisBytes most;
    for (int stage = 0; stage < static_cast<int>(volumes.stages.size()); ++stage) {
        const AxisBytes bytes = volumes.bytesOfAxes(stage);
        for (const Axis axis : kAxes) {
            most[axis] = std::max(most[axis], volumes.degrees[axis] > 1 ? bytes[axis] : 0);
        }
    }
    return most;
}

Result<Prediction> predict(const Model& model, const Job& job, const Degrees& degrees,
                           const ModelCut& cut, const Cluster& cluster,
                           std::span<const int> nodeOfRank) {
    const Result<AxisVolumes> volumes = volumesOf(model, job, degrees, cut.cut);
    if (!volumes.ok()) return volumes.status();
    const Result<std::vector<StageMemory>> memory = memoryOf(model, job, degrees, cut.cut);
    if (!memory.ok()) return memory.status();
    const ClusterRates rates = ratesOf(cluster);
    Result<StepTime> step =
        stepTime(model, job, degrees, cut.cut, placeOf(*volumes, cluster, nodeOfRank), rates.rates);
    if (!step.ok()) return step.status();
    Prediction answer;
    answer.model = model.name;
    answer.objective = job.objective;
    answer.cutHow = cut.how;
    answer.isCutExact = cut.isExact;
    answer.step = std::move(*step);
    answer.volumes = *volumes;
    answer.assumed = rates.assumed;
    answer.nodes = bytesOfNodes(*volumes, nodeOfRank, static_cast<int>(cluster.nodes.size()));
    const Result<std::string> layout = megatronLayout(model, cut.cut);
    if (layout.ok()) answer.megatronLayout = *layout;
    const std::vector<StageDevice> devices = devicesOfStages(cluster, nodeOfRank, cut.cut.stages);
    for (std::size_t at = 0; at < devices.size(); ++at) {
        Prediction::Stage stage;
        stage.layers = cut.cut.layersOfStage(static_cast<int>(at));
        stage.firstLayer = model.layers[static_cast<std::size_t>(stage.layers.front())].name;
        stage.lastLayer = model.layers[static_cast<std::size_t>(stage.layers.back())].name;
        stage.time = answer.step.stages[at];
        stage.memory = (*memory)[at];
        stage.deviceBytes = devices[at].memoryBytes;
        answer.stages.push_back(std::move(stage));
    }
    return answer;
}

}  // namespace isthmus::scheduler
