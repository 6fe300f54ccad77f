#pragma once

#include "comm/base/knobs.hpp"

namespace isthmus::cli {

/// The knobs of every layer, lowest first.
Options::Tables optionTables();

}  // namespace isthmus::cli
