#pragma once

#include <string>
#include <vector>

#include <isthmus/status.hpp>

#include "scheduler/model/model.hpp"

namespace isthmus::scheduler {

/// Modules within modules; the root is entry 0, children come after their parent, in the order in
/// which they run. A value.
struct ModuleTree {
    struct Module {
        std::string name;
        double cost = 0;  ///< with everything inside
        std::vector<int> children;
    };
    std::vector<Module> modules;
};

/// The tree that dots in layers' names tell ("encoder.block3.attention"). A module costs
/// memoryWeight x its share of parameters + (1 - memoryWeight) x its share of operations.
ModuleTree treeOf(const Model& model, double memoryWeight);

/// Which device each module runs on, as SageMaker's model parallelism cuts a tree: from the root
/// down, children are cut into runs whose dearest is cheapest, the devices of their parent go to
/// the runs by d'Hondt's rule, and a run without one stays on its parent's first.
/// (Karakus et al., arXiv 2111.05972; d'Hondt's rule proper, a count of seats for each run.)
/// kInvalidArgument: no device, no module, a cost that is negative.
Result<std::vector<int>> partitionTree(const ModuleTree& tree, int devices);

}  // namespace isthmus::scheduler
