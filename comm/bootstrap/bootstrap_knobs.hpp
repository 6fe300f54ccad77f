#pragma once

#include "comm/base/knobs.hpp"

namespace isthmus {

inline constexpr Knob kBootstrapKnobs[] = {
    {"ISTHMUS_RANK", "", Unit::kCount, "this process's place in the job; set by isthmus run"},
    {"ISTHMUS_WORLD_SIZE", "", Unit::kCount, "processes of the job; set by isthmus run"},
    {"ISTHMUS_LOCAL_RANK", "", Unit::kCount, "this process's place on its node"},
    {"ISTHMUS_LOCAL_WORLD_SIZE", "", Unit::kCount, "processes of the job on this node"},
    {"ISTHMUS_NODE", "", Unit::kText, "number of this node in the job; set by isthmus run"},
    {"ISTHMUS_STORE", "", Unit::kText,
     "where the ranks meet: host:port, [IPv6]:port, @name (this machine only) or a folder; empty: "
     "taken from the launcher's variables"},
    {"ISTHMUS_JOB_KEY_FD", "", Unit::kText, "inherited descriptor that holds the job key"},
    {"ISTHMUS_JOB_KEY_FILE", "", Unit::kText, "file of mode 0600 that holds the job key"},
    {"ISTHMUS_PORT_RANGE", "", Unit::kText,
     "ports that every listener may take, such as 5000-5015; empty: any free one"},
};

}  // namespace isthmus
