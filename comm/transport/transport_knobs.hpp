#pragma once

#include "comm/base/knobs.hpp"

namespace isthmus {

inline constexpr Knob kTransportKnobs[] = {
    {"ISTHMUS_TCP_CONGESTION", "cubic", Unit::kText,
     "congestion control of TCP connections, reno where it is missing; system: leave the system's"},
    {"ISTHMUS_TCP_USER_TIMEOUT", "10000", Unit::kMilliseconds,
     "how long a TCP peer may leave bytes unacknowledged before it counts as lost"},
    {"ISTHMUS_CONNECT_TIMEOUT", "30000", Unit::kMilliseconds,
     "how long connecting to one process is tried again"},
};

}  // namespace isthmus
