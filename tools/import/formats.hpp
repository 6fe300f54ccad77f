#pragma once

#include <string>
#include <vector>

#include "tools/import/import.hpp"

namespace isthmus::foreign {

/// Names of Slurm's lists: "gpu[01-03,10],login1". kConfiguration: brackets that do not close, a
/// range that runs back, more than `kMostRanks` names.
Result<std::vector<std::string>> hostsOf(const std::string& list);

/// A group of Slurm's: a switch or a block.
struct SlurmGroup {
    std::string name;
    std::vector<std::string> nodes;
    std::vector<std::string> groups;  ///< switches under it
    std::string where;                ///< "line 3", for errors
};

/// The tree that the groups make. kConfiguration: no node, two parents, a circle, a name that is
/// nowhere.
Result<scheduler::Cluster> clusterOfGroups(const std::vector<SlurmGroup>& groups, int devices);

Result<scheduler::Cluster> fromSlurmConf(const std::string& text, const Defaults& defaults);
Result<scheduler::Cluster> fromSlurmYaml(const std::string& text, const Defaults& defaults);
Result<scheduler::Cluster> fromHwlocXml(const std::string& text, const Defaults& defaults);
Result<scheduler::Cluster> fromNcclXml(const std::string& text, const Defaults& defaults);
Result<scheduler::Cluster> fromNvidiaSmi(const std::string& text, const Defaults& defaults);

/// A cluster of that node alone. kConfiguration: it has no device.
Result<scheduler::Cluster> clusterOfNode(scheduler::Node node, double insideBitsPerSecond);

}  // namespace isthmus::foreign
