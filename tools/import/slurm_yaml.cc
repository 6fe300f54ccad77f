// Slurm's topology.yaml (topology.yaml(5), Slurm 25.05): named topologies, of which the default one
// is read, or the first.
#include "tools/import/formats.hpp"

#ifdef ISTHMUS_HAS_YAML
#include <yaml-cpp/yaml.h>
#endif

namespace isthmus::foreign {

#ifdef ISTHMUS_HAS_YAML

namespace {

std::string lineOf(const YAML::Node& node) {
    return "line " + std::to_string(node.Mark().line + 1);
}

Result<std::vector<std::string>> namesOf(const YAML::Node& list) {
    if (!list) return std::vector<std::string>();
    if (!list.IsScalar()) return Status::configuration(lineOf(list) + ": is no host list");
    Result<std::vector<std::string>> names = hostsOf(list.Scalar());
    return names.ok() ? names
                      : Result<std::vector<std::string>>(names.status().within(lineOf(list)));
}

Result<std::vector<SlurmGroup>> groupsOf(const YAML::Node& list, const char* nameKey) {
    std::vector<SlurmGroup> groups;
    if (!list || !list.IsSequence()) {
        return Status::configuration(std::string("the topology has no list of ") + nameKey +
                                     " entries");
    }
    for (const YAML::Node& each : list) {
        if (!each.IsMap() || !each[nameKey] || !each[nameKey].IsScalar()) {
            return Status::configuration(lineOf(each) + ": has no \"" + nameKey + "\"");
        }
        SlurmGroup group;
        group.name = each[nameKey].Scalar();
        group.where = lineOf(each);
        Result<std::vector<std::string>> nodes = namesOf(each["nodes"]);
        if (!nodes.ok()) return nodes.status();
        Result<std::vector<std::string>> children = namesOf(each["children"]);
        if (!children.ok()) return children.status();
        group.nodes = std::move(*nodes);
        group.groups = std::move(*children);
        groups.push_back(std::move(group));
    }
    return groups;
}

bool isDefault(const YAML::Node& topology) {
    const YAML::Node mark = topology["cluster_default"];
    return mark && mark.IsScalar() && mark.as<bool>(false);
}

Result<scheduler::Cluster> clusterOf(const YAML::Node& document, const Defaults& defaults) {
    if (!document.IsSequence() || document.size() == 0) {
        return Status::configuration("is no list of topologies");
    }
    YAML::Node chosen = document[0];
    for (const YAML::Node& each : document) {
        if (!each.IsMap()) return Status::configuration(lineOf(each) + ": is no topology");
        if (isDefault(each)) chosen.reset(each);
    }
    const bool isTree = chosen["tree"].IsDefined();
    if (!isTree && !chosen["block"].IsDefined()) {
        return Status::unsupported(lineOf(chosen) +
                                   ": has neither a tree nor blocks: nodes are not named");
    }
    const Result<std::vector<SlurmGroup>> groups =
        isTree ? groupsOf(chosen["tree"]["switches"], "switch")
               : groupsOf(chosen["block"]["blocks"], "block");
    if (!groups.ok()) return groups.status();
    return clusterOfGroups(*groups, defaults.devices);
}

}  // namespace

Result<scheduler::Cluster> fromSlurmYaml(const std::string& text, const Defaults& defaults) {
    try {
        return clusterOf(YAML::Load(text), defaults);
    } catch (const YAML::Exception& error) {  // the library's way of saying so
        return Status::configuration("line " + std::to_string(error.mark.line + 1) + ": " +
                                     error.msg);
    }
}

#else

Result<scheduler::Cluster> fromSlurmYaml(const std::string&, const Defaults&) {
    return Status::unsupported("is YAML, and this program was built without yaml-cpp");
}

#endif

}  // namespace isthmus::foreign
