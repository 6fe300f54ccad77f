#pragma once

#include <cstdint>
#include <string_view>

#include "comm/selector/select.hpp"

namespace isthmus {

/// What a call over many nodes goes by: more than eight equal ones, whose number has no factor
/// above eight. Empty: what serves few nodes serves it. `segmentBytes`: what one pass moves.
std::string_view algorithmForMany(const CallShape& call, const Layout& layout,
                                  std::uint64_t segmentBytes);

/// Operand bytes of one pass below which an all-to-all would send messages that cost more than
/// their bytes; 0: of no matter.
std::uint64_t leastPassBytes(const CallShape& call, const Layout& layout);

}  // namespace isthmus
