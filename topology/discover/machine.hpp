#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <isthmus/status.hpp>

#include "topology/model/fact.hpp"

namespace isthmus {

struct Cache {
    int level = 0;
    std::int64_t bytes = 0;
    int processors = 0;  ///< that share one such cache
    int copies = 0;      ///< of this kind in the machine

    bool operator==(const Cache&) const = default;
};

struct NumaNode {
    int index = 0;
    std::int64_t bytes = 0;
    std::string processors;  ///< list as in sysfs: "0-3,8"

    bool operator==(const NumaNode&) const = default;
};

/// The processors and the memory of this operating-system instance.
struct Machine {
    std::string processorModel;
    int packages = 0;
    int cores = 0;
    int processors = 0;           ///< hardware threads that are online
    std::string allowed;          ///< those that this process may run on, as a list
    Fact<int> allowedProcessors;  ///< how many those are
    Fact<std::int64_t> memoryBytes;
    std::vector<Cache> caches;  ///< data and unified caches, level 1 first
    std::vector<NumaNode> numaNodes;

    bool operator==(const Machine&) const = default;
};

/// Asks hwloc about the machine that the process runs on. Takes some milliseconds.
Result<Machine> discoverMachine();

}  // namespace isthmus
