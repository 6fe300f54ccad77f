#pragma once

#include <cstdint>
#include <string>

#include "topology/model/fact.hpp"

namespace isthmus {

/// What the container or cgroup allows, where it is less than the machine has. Unknown facts mean:
/// no limit is set, or none can be read.
struct ContainerLimits {
    Fact<double> processors;  ///< CPU time per time, 1.5 means one and a half processors
    Fact<std::int64_t> memoryBytes;
    Fact<std::int64_t> sharedBytes;  ///< size of /dev/shm

    bool operator==(const ContainerLimits&) const = default;
};

/// Reads cgroup v2, or v1 where that is mounted: the tightest limit from our group up to the root.
/// `root` stands for "/" (tests bring their own).
ContainerLimits discoverContainerLimits(const std::string& root = "");

}  // namespace isthmus
