#pragma once

#include <memory>

#include "comm/communicator/communicator.hpp"

namespace isthmus {

/// Starts a sum of f16 or bf16 as one of f32, whose result is rounded at the end: once, whatever
/// the plan. Inputs are multiplied by `factor` in f32. The request went through prepare().
std::shared_ptr<Work> callWidened(Communicator& communicator, CallRequest request,
                                  const CallOptions& options, double factor);

}  // namespace isthmus
