#pragma once

#include <cstdint>
#include <string>

#include "scheduler/model/job.hpp"
#include "scheduler/model/model.hpp"
#include "scheduler/search/matrices.hpp"

namespace isthmus::cli {

struct ModelAndJob {
    scheduler::Model model;
    scheduler::Job job;
};

/// `model`: a file of isthmus_model, or "gpt-13b" (40 layers of 5120, 40 heads, sequence 256).
/// `job`: a file of isthmus_job; empty: global batch 1536, as the announcement of veGiantModel
/// trains that model. kConfiguration and kInvalidArgument name the file or the option.
Result<ModelAndJob> modelAndJobOf(const std::string& model, const std::string& job);

/// What the stage that sends most sends on each axis, layers cut evenly; nothing for degrees that
/// do not divide what they must, or that need more than `deviceBytes` of a device (0: unknown).
scheduler::VolumesOf volumesOfModel(ModelAndJob what, std::int64_t deviceBytes);

/// Why these degrees are not possible; success when they are. kUnsupported: memory, with the
/// largest part and the cheapest change that would fit.
Status whyNot(const ModelAndJob& what, std::int64_t deviceBytes, const scheduler::Degrees& degrees);

}  // namespace isthmus::cli
