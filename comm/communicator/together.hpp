#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "comm/engine/work.hpp"

namespace isthmus {

/// One Work for several: done when all are, with the first failure in their order. `finish` runs
/// before that when none failed. None at all: done at once.
std::shared_ptr<Work> together(const std::vector<std::shared_ptr<Work>>& works,
                               std::function<void()> finish = {});

}  // namespace isthmus
