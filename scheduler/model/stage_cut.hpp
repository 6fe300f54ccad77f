#pragma once

#include <vector>

#include <isthmus/status.hpp>

#include "scheduler/model/model.hpp"

namespace isthmus::scheduler {

/// Which layers each stage of a pipeline has. A value.
///
/// A stage has `chunks / stages` chunks (more than one when interleaved): chunk c is on stage
/// c % stages, and a sample meets the chunks in order.
struct StageCut {
    int stages = 1;
    int chunks = 1;
    std::vector<int> chunkOf;  ///< by layer

    int stageOf(int layer) const { return chunkOf[static_cast<std::size_t>(layer)] % stages; }
    std::vector<int> layersOfChunk(int chunk) const;
    std::vector<int> layersOfStage(int stage) const;

    bool operator==(const StageCut&) const = default;
};

/// Chunks of layers that follow each other; `firstLayers` has the first layer of each chunk.
StageCut contiguousCut(int stages, int layers, const std::vector<int>& firstLayers);

/// Layers dealt evenly in their order; the first chunks have one more where they do not divide.
StageCut evenCut(int stages, int virtualStages, int layers);

/// Whether every layer has a chunk, every chunk a layer, and no edge runs back.
Status checkCut(const Model& model, const StageCut& cut);

/// Bytes that one sample hands from each chunk to later ones: entry c is what crosses from chunk c
/// to chunk c + 1, in the model's elements. A layer's output crosses once, however many read it.
std::vector<std::int64_t> boundaryBytes(const Model& model, const StageCut& cut);

}  // namespace isthmus::scheduler
