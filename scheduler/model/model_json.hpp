#pragma once

#include <string>

#include <isthmus/status.hpp>

#include "scheduler/model/job.hpp"
#include "scheduler/model/model.hpp"

namespace isthmus::scheduler {

/// Version of the model and job documents: their `isthmus_model` and `isthmus_job`.
inline constexpr int kModelSchemaVersion = 1;

/// Reads a model: layers one by one, or a family's sizes under `generate`, made for the job's
/// precision and sequence. The form: scheduler/schema/model.schema.json.
/// kConfiguration names the place and what is wrong.
Result<Model> modelFromJson(const std::string& text, const Job& job);

/// One document that modelFromJson reads back as it is.
std::string toJson(const Model& model);

}  // namespace isthmus::scheduler
