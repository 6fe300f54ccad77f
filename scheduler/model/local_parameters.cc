#include "scheduler/model/local_parameters.hpp"

#include <algorithm>
#include <set>
#include <string_view>

namespace isthmus::scheduler {

LocalParameters& LocalParameters::operator+=(const LocalParameters& other) {
    dense += other.dense;
    denseTrained += other.denseTrained;
    replicated += other.replicated;
    expert += other.expert;
    return *this;
}

LocalParameters localParameters(const Layer& layer, const Degrees& degrees) {
    // Where only some of a layer is frozen, it is the large matrices: those that tensor groups
    // split.
    const std::int64_t split = layer.parameters - layer.replicatedParameters;
    const std::int64_t frozenSplit = std::min(layer.frozenParameters, split);
    const std::int64_t frozenWhole = layer.frozenParameters - frozenSplit;
    LocalParameters local;
    local.replicated = layer.replicatedParameters - frozenWhole;
    local.dense = dividedUp(split, degrees[Axis::kTensor]) + layer.replicatedParameters;
    local.denseTrained = dividedUp(split - frozenSplit, degrees[Axis::kTensor]) + local.replicated;
    local.expert = dividedUp(layer.expertParameters,
                             std::int64_t{degrees[Axis::kExpert]} * degrees[Axis::kTensor]);
    return local;
}

LocalParameters tiedParameters(const Layer& layer, const Degrees& degrees) {
    LocalParameters local;
    local.dense = dividedUp(layer.tiedParameters, degrees[Axis::kTensor]);
    local.denseTrained = local.dense;
    return local;
}

std::vector<LocalParameters> parametersOfStage(const Model& model, const StageCut& cut, int stage,
                                               const Degrees& degrees) {
    std::vector<LocalParameters> list;
    std::set<std::string_view> present;
    for (const int place : cut.layersOfStage(stage)) {
        const Layer& layer = model.layers[static_cast<std::size_t>(place)];
        list.push_back(localParameters(layer, degrees));
        present.insert(layer.name);
        if (layer.tiedTo.empty() || !present.insert(layer.tiedTo).second) continue;
        list.back() += tiedParameters(layer, degrees);
    }
    return list;
}

}  // namespace isthmus::scheduler
