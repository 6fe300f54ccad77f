#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/model/model.hpp"

namespace isthmus::scheduler {

/// A transformer's sizes. What a family does not have is ignored. A value.
struct TransformerShape {
    int layers = 1;
    std::int64_t hidden = 1;
    int heads = 1;
    int keyValueHeads = 0;         ///< 0: as many as heads
    std::int64_t feedForward = 0;  ///< 0: 4 x hidden
    std::int64_t vocabulary = 0;   ///< 0: neither embedding nor head
    std::int64_t sequence = 1;
    std::int64_t positions = 0;   ///< learned ones; 0: as many as the sequence has tokens
    std::int64_t tokenTypes = 0;  ///< BERT: 2, RoBERTa: 1
    int experts = 0;              ///< mixture of experts: in each layer
    int expertsPerToken = 2;
    bool keepsScores = true;  ///< attention scores are kept for backward; fused kernels keep none
    int elementBytes = 2;
};

/// GPT-2's layout with a tied head. Activations: Korthikanti et al., arXiv 2205.05198, section 4.
Model gptModel(const TransformerShape& shape);

/// Llama's layout: gated feed-forward, grouped keys, untied head; no bias, no dropout.
Model llamaModel(const TransformerShape& shape);

/// Mixtral's layout: Llama's with `experts` feed-forwards in each layer and a router.
Model mixtureModel(const TransformerShape& shape);

/// BERT's and RoBERTa's encoder with token types and a pooler.
Model bertModel(const TransformerShape& shape);

/// DLRM's layout (Naumov et al., arXiv 1906.00091): tables beside a bottom perceptron, pairwise
/// products, a top perceptron. A DAG.
struct RecommenderShape {
    std::vector<std::int64_t> tableRows;
    std::int64_t dimension = 16;
    std::int64_t denseFeatures = 13;
    std::vector<std::int64_t> bottom;  ///< widths; the last is the dimension
    std::vector<std::int64_t> top;
    std::int64_t lookups = 1;  ///< of one sample in each table
    int elementBytes = 4;
};

Model recommenderModel(const RecommenderShape& shape);

}  // namespace isthmus::scheduler
