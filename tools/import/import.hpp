#pragma once

#include <string>
#include <vector>

#include "scheduler/cluster/cluster.hpp"

namespace isthmus::foreign {

/// What the text leaves open.
struct Defaults {
    std::string name = "node0";  ///< of a node that has none
    int devices = 1;             ///< of each node, where only nodes are known
};

/// Reads isthmus's own topology, Slurm's topology.conf or topology.yaml, hwloc's XML, NCCL's
/// topology XML, or what `nvidia-smi topo -m` printed. kConfiguration: none of them, or what is
/// wrong and where. kUnsupported: this program was built without the library for it.
Result<scheduler::Cluster> clusterFromText(const std::string& text, const Defaults& defaults);

/// Several files: of one node each, named after their files where they have no name.
Result<scheduler::Cluster> clusterFromFiles(const std::vector<std::string>& paths, int devices);

}  // namespace isthmus::foreign
