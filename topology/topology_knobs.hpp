#pragma once

#include "comm/base/knobs.hpp"

namespace isthmus {

inline constexpr Knob kTopologyKnobs[] = {
    {"ISTHMUS_INTERFACE", "", Unit::kText,
     "network interfaces to use, several together: names, addresses or networks with commas "
     "between them; =name exactly, ^names not these; empty: the way to the store"},
    {"ISTHMUS_TOPOLOGY", "", Unit::kText,
     "JSON file whose facts about this node replace what is discovered"},
};

}  // namespace isthmus
