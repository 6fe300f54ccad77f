#pragma once

#include "comm/base/knobs.hpp"

namespace isthmus {

inline constexpr Knob kTransportKnobs[] = {
    {"ISTHMUS_TRANSPORTS", "auto", Unit::kText,
     "what carries messages, as a list: shm inside a node; tcp, ucx and ofi between nodes, the "
     "best "
     "first: two processes use the first that both have and that a few messages have proved; auto: "
     "shm,tcp; ^shm: auto without it; tcp@eth0+eth1: these cards, in words of ISTHMUS_INTERFACE; "
     "ucx@tcp, ucx@posix+cma: UCX with these transports of its own, ucx alone: all of them but "
     "tcp; ofi@efa, ofi@tcp, ofi@shm: libfabric with this provider, ofi alone: the first that "
     "reaches other nodes"},
    {"ISTHMUS_UCX_LIBRARY", "libucp.so.0", Unit::kText,
     "UCX: a path, or the name that the dynamic linker knows it by"},
    {"ISTHMUS_TCP_CONGESTION", "cubic", Unit::kText,
     "congestion control of TCP connections, reno where it is missing; system: leave the system's"},
    {"ISTHMUS_TCP_USER_TIMEOUT", "10000", Unit::kMilliseconds,
     "how long a TCP peer may leave bytes unacknowledged before it counts as lost"},
    {"ISTHMUS_CONNECT_TIMEOUT", "30000", Unit::kMilliseconds,
     "how long connecting to one process is tried again"},
};

}  // namespace isthmus
