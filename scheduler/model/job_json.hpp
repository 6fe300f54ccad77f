#pragma once

#include <string>

#include <isthmus/status.hpp>

#include "scheduler/model/job.hpp"

namespace isthmus::scheduler {

/// Reads a job; what is not said keeps the default. The form: scheduler/schema/job.schema.json.
/// kConfiguration names the place and what is wrong.
Result<Job> jobFromJson(const std::string& text);

/// One document that jobFromJson reads back as it is.
std::string toJson(const Job& job);

}  // namespace isthmus::scheduler
