#pragma once

#include <string>

#include <isthmus/status.hpp>

#include "scheduler/model/model.hpp"
#include "scheduler/model/stage_cut.hpp"

namespace isthmus::scheduler {

/// Megatron-LM's `--pipeline-model-parallel-layout`: E embedding, t transformer, m multi-token
/// prediction, L head and loss; `|` between chunks, `x*n` and `(..)*n` repeat
/// (megatron/core/transformer/pipeline_parallel_layer_layout.py).
/// kUnsupported: a layer of another type, or chunks that do not follow each other.
Result<std::string> megatronLayout(const Model& model, const StageCut& cut);

}  // namespace isthmus::scheduler
