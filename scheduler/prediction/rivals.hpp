#pragma once

#include <string>
#include <vector>

#include "scheduler/prediction/model_search.hpp"

namespace isthmus::scheduler {

/// Another way to train the same model on the same cluster, ranks in Megatron's fixed order.
struct Rival {
    std::string name;  ///< "ZeRO stage 3"
    Degrees degrees;
    Job job;
    std::string impossible;  ///< why; then the rest is empty
    Prediction prediction;
};

/// Data parallelism over all devices: plain, ZeRO stages 1 to 3 sharded over all of them, and
/// sharded inside a node and replicated across (HSDP), where nodes are alike. Batches, precision
/// and recomputation are those of `question.job`. Then `degrees`, each as Megatron starts it: equal
/// numbers of transformer layers a stage.
std::vector<Rival> rivalsOf(const ModelQuestion& question, const std::vector<Degrees>& degrees);

}  // namespace isthmus::scheduler
