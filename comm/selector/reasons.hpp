#pragma once

#include <string>
#include <string_view>

#include "comm/algorithm/catalogue.hpp"

namespace isthmus {

/// Why an algorithm was chosen for a call over several nodes, in one line for people. `keepsBound`:
/// an exchange of blocks loads no card more than it must (collectives.md 2.1).
std::string reasonOverNodes(std::string_view algorithm, const Layout& layout, bool keepsBound);

}  // namespace isthmus
