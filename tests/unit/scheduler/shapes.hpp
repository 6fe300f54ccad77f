#pragma once

#include "scheduler/axis.hpp"
#include "scheduler/model/generate.hpp"

namespace isthmus::scheduler {

/// The four of Korthikanti et al., arXiv 2205.05198, table 3, and how they are split there.
struct PublishedModel {
    const char* name;
    int layers;
    std::int64_t hidden;
    int heads;
    int tensor;
    int pipe;
    int virtualStages;
    std::int64_t microBatch;
    std::int64_t globalBatch;
};

inline constexpr PublishedModel kPublished[] = {
    {"22B", 48, 6144, 64, 8, 1, 1, 4, 4},
    {"175B", 96, 12288, 96, 8, 8, 3, 1, 64},
    {"530B", 105, 20480, 128, 8, 35, 3, 1, 280},
    {"1T", 128, 25600, 160, 8, 64, 1, 1, 512},
};

/// With the vocabulary and sequence of that paper; `vocabulary` of 0 leaves only the layers.
inline TransformerShape shapeOf(const PublishedModel& published, std::int64_t vocabulary = 51200) {
    TransformerShape shape;
    shape.layers = published.layers;
    shape.hidden = published.hidden;
    shape.heads = published.heads;
    shape.vocabulary = vocabulary;
    shape.sequence = 2048;
    return shape;
}

inline TransformerShape transformer(int layers, std::int64_t hidden, int heads,
                                    std::int64_t vocabulary, std::int64_t sequence) {
    TransformerShape shape;
    shape.layers = layers;
    shape.hidden = hidden;
    shape.heads = heads;
    shape.vocabulary = vocabulary;
    shape.sequence = sequence;
    return shape;
}

/// Degrees in words.
inline Degrees ways(int tensor, int pipe, int data, int context = 1, int expert = 1) {
    Degrees degrees(1);
    degrees[Axis::kTensor] = tensor;
    degrees[Axis::kPipe] = pipe;
    degrees[Axis::kData] = data;
    degrees[Axis::kContext] = context;
    degrees[Axis::kExpert] = expert;
    return degrees;
}

}  // namespace isthmus::scheduler
