#pragma once

#include "comm/base/knobs.hpp"

namespace isthmus {

inline constexpr Knob kMemoryKnobs[] = {
    {"ISTHMUS_ARENA", "0", Unit::kBytes,
     "address space for memory that the ranks of a node share; 0 is the machine's memory, at most "
     "32G"},
    {"ISTHMUS_SCRATCH", "256M", Unit::kBytes,
     "scratch that a rank keeps for later calls instead of giving it back"},
};

}  // namespace isthmus
