#include "tools/import/import.hpp"

#include <algorithm>
#include <set>

#include "scheduler/json/field.hpp"
#include "tools/import/formats.hpp"

namespace isthmus::foreign {
namespace {

using scheduler::Cluster;

bool has(const std::string& text, const char* what) {
    return text.find(what) != std::string::npos;
}

bool hasIgnoringCase(std::string text, const char* what) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char letter) { return std::tolower(letter); });
    return has(text, what);
}

/// "/etc/host3.xml" is host3.
std::string stemOf(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    const std::string file = slash == path.npos ? path : path.substr(slash + 1);
    return file.substr(0, std::min(file.find('.'), file.size()));
}

}  // namespace

Result<Cluster> clusterOfNode(scheduler::Node node, double insideBitsPerSecond) {
    if (node.devices.empty()) {
        return Status::configuration("has no device that a rank could have");
    }
    Cluster cluster;
    cluster.levels = {{.name = "cluster"}, {.name = "node", .bitsPerSecond = insideBitsPerSecond}};
    cluster.nodes.push_back(std::move(node));
    return cluster;
}

Result<Cluster> clusterFromText(const std::string& text, const Defaults& defaults) {
    const std::size_t begin = text.find_first_not_of(" \t\r\n");
    if (begin == text.npos) return Status::configuration("is empty");
    if (text[begin] == '{') return scheduler::clusterFromJson(text);
    if (text[begin] == '<') {
        if (has(text, "<topology")) return fromHwlocXml(text, defaults);
        if (has(text, "<system")) return fromNcclXml(text, defaults);
        return Status::configuration("is XML of neither hwloc (<topology>) nor NCCL (<system>)");
    }
    if (hasIgnoringCase(text, "switchname=") || hasIgnoringCase(text, "blockname=")) {
        return fromSlurmConf(text, defaults);
    }
    if (has(text, "CPU Affinity") || has(text, "GPU0")) return fromNvidiaSmi(text, defaults);
    if (has(text, "topology:")) return fromSlurmYaml(text, defaults);
    return Status::configuration(
        "is none of: isthmus_topology JSON, Slurm's topology.conf or topology.yaml, hwloc's XML, "
        "NCCL's topology XML, nvidia-smi topo -m");
}

Result<Cluster> clusterFromFiles(const std::vector<std::string>& paths, int devices) {
    Cluster all;
    std::set<std::string> names;
    for (const std::string& path : paths) {
        const Result<std::string> text = scheduler::textOfFile(path);
        if (!text.ok()) return text.status();
        Result<Cluster> cluster = clusterFromText(*text, {stemOf(path), devices});
        if (!cluster.ok()) return cluster.status().within(path);
        if (paths.size() == 1) return cluster;
        if (cluster->nodes.size() != 1) {
            return Status::configuration(path + ": has " + std::to_string(cluster->nodes.size()) +
                                         " nodes; several files are of one node each");
        }
        if (!names.insert(cluster->nodes.front().name).second) {
            return Status::configuration(path + ": its node \"" + cluster->nodes.front().name +
                                         "\" is there twice");
        }
        if (all.levels.empty()) {
            all = std::move(*cluster);
            continue;
        }
        double& inside = all.levels.back().bitsPerSecond;
        inside = std::min(inside, cluster->levels.back().bitsPerSecond);
        all.nodes.push_back(std::move(cluster->nodes.front()));
    }
    sortNodes(all);
    return all;
}

}  // namespace isthmus::foreign
