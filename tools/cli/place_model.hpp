#pragma once

#include <string>

#include "scheduler/model/job.hpp"
#include "scheduler/model/model.hpp"

namespace isthmus::cli {

struct ModelAndJob {
    scheduler::Model model;
    scheduler::Job job;
};

/// `model`: a file of isthmus_model, or "gpt-13b" (40 layers of 5120, 40 heads, sequence 256).
/// `job`: a file of isthmus_job; empty: global batch 1536, as the announcement of veGiantModel
/// trains that model. kConfiguration and kInvalidArgument name the file or the option.
Result<ModelAndJob> modelAndJobOf(const std::string& model, const std::string& job);

}  // namespace isthmus::cli
