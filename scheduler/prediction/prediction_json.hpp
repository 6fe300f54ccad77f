#pragma once

#include <nlohmann/json_fwd.hpp>

#include "scheduler/json/field.hpp"
#include "scheduler/prediction/prediction.hpp"

namespace isthmus::scheduler {

/// Adds `objective`, `stages` and `predicted` of placement.schema.json to a placement's document.
void addPrediction(const Prediction& prediction, const Cluster& cluster,
                   nlohmann::ordered_json& document);

/// Reads them from the document back, but the bytes of nodes, which follow from where ranks are;
/// what is wrong goes to the field's reading.
Prediction predictionOf(const Field& document, const Degrees& degrees);

}  // namespace isthmus::scheduler
