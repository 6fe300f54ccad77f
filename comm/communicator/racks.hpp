#pragma once

#include <string>
#include <vector>

#include <isthmus/status.hpp>

#include "comm/algorithm/catalogue.hpp"

namespace isthmus {

/// What one rank says of the rack that its node is in.
struct RackWord {
    std::string name;                     ///< ISTHMUS_RACK: "r7", or "row2/r7"; empty: not known
    std::uint64_t bitsPerSecond = 0;      ///< ISTHMUS_RACK_RATE; 0: not known
    std::uint64_t lineBitsPerSecond = 0;  ///< of the node's card
};

/// Layout::racks from what the ranks say; a node's first rank that names one speaks for it. Empty
/// where some node's rack is not known, where racks tell nothing apart, and where every rack's link
/// carries as much as all of its nodes' cards. Errors: kConfiguration (names of unlike many parts).
Result<std::vector<std::vector<int>>> racksOf(const Layout& layout,
                                              const std::vector<RackWord>& words);

}  // namespace isthmus
