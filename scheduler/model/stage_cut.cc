#include "scheduler/model/stage_cut.hpp"

#include <algorithm>

namespace isthmus::scheduler {

std::vector<int> StageCut::layersOfChunk(int chunk) const {
    std::vector<int> layers;
    for (std::size_t layer = 0; layer < chunkOf.size(); ++layer) {
        if (chunkOf[layer] == chunk) layers.push_back(static_cast<int>(layer));
    }
    return layers;
}

std::vector<int> StageCut::layersOfStage(int stage) const {
    std::vector<int> layers;
    for (std::size_t layer = 0; layer < chunkOf.size(); ++layer) {
        if (chunkOf[layer] % stages == stage) layers.push_back(static_cast<int>(layer));
    }
    return layers;
}

StageCut contiguousCut(int stages, int layers, const std::vector<int>& firstLayers) {
    StageCut cut{stages, static_cast<int>(firstLayers.size()), {}};
    for (int chunk = 0; chunk < cut.chunks; ++chunk) {
        const auto next = static_cast<std::size_t>(chunk) + 1;
        const int end = next < firstLayers.size() ? firstLayers[next] : layers;
        cut.chunkOf.resize(static_cast<std::size_t>(std::max(end, 0)), chunk);
    }
    return cut;
}

StageCut evenCut(int stages, int virtualStages, int layers) {
    const int chunks = stages * virtualStages;
    std::vector<int> firstLayers;
    int first = 0;
    for (int chunk = 0; chunk < chunks; ++chunk) {
        firstLayers.push_back(first);
        first += layers / chunks + (chunk < layers % chunks ? 1 : 0);
    }
    return contiguousCut(stages, layers, firstLayers);
}

Status checkCut(const Model& model, const StageCut& cut) {
    if (cut.stages < 1 || cut.chunks < cut.stages || cut.chunks % cut.stages != 0) {
        return Status::invalidArgument("cut is wrong: " + std::to_string(cut.chunks) +
                                       " chunks on " + std::to_string(cut.stages) + " stages");
    }
    if (cut.chunkOf.size() != model.layers.size()) {
        return Status::invalidArgument("cut is wrong: it has " +
                                       std::to_string(cut.chunkOf.size()) + " layers of " +
                                       std::to_string(model.layers.size()));
    }
    std::vector<bool> isUsed(static_cast<std::size_t>(cut.chunks));
    for (std::size_t layer = 0; layer < cut.chunkOf.size(); ++layer) {
        const int chunk = cut.chunkOf[layer];
        if (chunk < 0 || chunk >= cut.chunks) {
            return Status::invalidArgument("cut is wrong: layer " + model.layers[layer].name +
                                           " has chunk " + std::to_string(chunk));
        }
        isUsed[static_cast<std::size_t>(chunk)] = true;
    }
    const auto unused = std::find(isUsed.begin(), isUsed.end(), false);
    if (unused != isUsed.end()) {
        return Status::invalidArgument("cut is wrong: chunk " +
                                       std::to_string(unused - isUsed.begin()) + " has no layer");
    }
    for (const Edge& edge : model.dependencies()) {
        const auto from = static_cast<std::size_t>(edge.from);
        const auto to = static_cast<std::size_t>(edge.to);
        if (cut.chunkOf[from] > cut.chunkOf[to]) {
            return Status::invalidArgument("cut is wrong: " + model.layers[to].name +
                                           " is before its input " + model.layers[from].name);
        }
    }
    return {};
}

std::vector<std::int64_t> boundaryBytes(const Model& model, const StageCut& cut) {
    std::vector<int> lastReader(model.layers.size(), -1);
    for (const Edge& edge : model.dependencies()) {
        int& last = lastReader[static_cast<std::size_t>(edge.from)];
        last = std::max(last, cut.chunkOf[static_cast<std::size_t>(edge.to)]);
    }
    std::vector<std::int64_t> crossing(static_cast<std::size_t>(cut.chunks), 0);
    for (std::size_t layer = 0; layer < model.layers.size(); ++layer) {
        for (int chunk = cut.chunkOf[layer]; chunk < lastReader[layer]; ++chunk) {
            crossing[static_cast<std::size_t>(chunk)] += model.layers[layer].boundaryBytes;
        }
    }
    return crossing;
}

}  // namespace isthmus::scheduler
