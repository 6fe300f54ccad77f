#pragma once

#include <string>
#include <vector>

#include <isthmus/status.hpp>

#include "scheduler/model/model.hpp"

namespace isthmus::scheduler {

/// What `parameters` and `type:<regex>` count, by layer. kInvalidArgument: a wrong expression, or
/// one that is found in no layer.
Result<std::vector<double>> numbersOf(const Model& model, const std::string& method);

/// The first layer of each of `chunks` chunks, from `manual:..`. kInvalidArgument says which
/// number is wrong.
Result<std::vector<int>> firstLayersOf(const std::string& method, int chunks, int layers);

}  // namespace isthmus::scheduler
