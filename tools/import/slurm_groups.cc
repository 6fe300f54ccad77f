#include <algorithm>
#include <map>

#include "tools/import/formats.hpp"

namespace isthmus::foreign {
namespace {

using scheduler::Cluster;
using scheduler::Node;

class Tree {
public:
    explicit Tree(const std::vector<SlurmGroup>& groups) : groups_(groups) {}

    Result<Cluster> cluster(int devices);

private:
    Status readParents();
    Result<std::vector<std::string>> pathOf(const SlurmGroup& leaf) const;
    void dropCommon(std::vector<Node>& nodes) const;

    const std::vector<SlurmGroup>& groups_;
    std::map<std::string, const SlurmGroup*> byName_;
    std::map<std::string, std::string> parent_;
};

Status Tree::readParents() {
    for (const SlurmGroup& group : groups_) {
        if (!byName_.emplace(group.name, &group).second) {
            return Status::configuration(group.where + ": \"" + group.name + "\" is there twice");
        }
    }
    for (const SlurmGroup& group : groups_) {
        for (const std::string& child : group.groups) {
            if (byName_.count(child) == 0) {
                return Status::configuration(group.where + ": no switch is named \"" + child +
                                             "\"");
            }
            const auto [known, isNew] = parent_.emplace(child, group.name);
            if (!isNew) {
                return Status::configuration(group.where + ": switch \"" + child +
                                             "\" is under \"" + known->second + "\" already");
            }
        }
    }
    return {};
}

/// Outermost first, the leaf itself last.
Result<std::vector<std::string>> Tree::pathOf(const SlurmGroup& leaf) const {
    std::vector<std::string> path = {leaf.name};
    for (auto at = parent_.find(leaf.name); at != parent_.end(); at = parent_.find(at->second)) {
        if (path.size() > groups_.size()) {
            return Status::configuration(leaf.where + ": \"" + leaf.name +
                                         "\" is under switches that are under each other");
        }
        path.insert(path.begin(), at->second);
    }
    return path;
}

/// One switch above everything tells nothing.
void Tree::dropCommon(std::vector<Node>& nodes) const {
    const auto isCommon = [&] {
        return !nodes.front().at.empty() &&
               std::all_of(nodes.begin(), nodes.end(), [&](const Node& node) {
                   return node.at.front() == nodes.front().at.front();
               });
    };
    while (isCommon()) {
        for (Node& node : nodes) node.at.erase(node.at.begin());
    }
}

Result<Cluster> Tree::cluster(int devices) {
    ISTHMUS_TRY(readParents());
    Cluster cluster;
    std::map<std::string, std::string> switchOf;
    std::size_t depth = 0;
    for (const SlurmGroup& group : groups_) {
        if (group.nodes.empty()) continue;
        Result<std::vector<std::string>> path = pathOf(group);
        if (!path.ok()) return path.status();
        depth = std::max(depth, path->size());
        for (const std::string& name : group.nodes) {
            const auto [known, isNew] = switchOf.emplace(name, group.name);
            if (!isNew) {
                return Status::configuration(group.where + ": node \"" + name + "\" is under \"" +
                                             known->second + "\" already");
            }
            Node node{name, *path, {}, {}};
            for (int index = 0; index < devices; ++index) node.devices.push_back({.index = index});
            cluster.nodes.push_back(std::move(node));
        }
    }
    if (cluster.nodes.empty()) return Status::configuration("no group has a node");
    if (cluster.ranks() > scheduler::kMostRanks) {
        return Status::configuration("has more than " + std::to_string(scheduler::kMostRanks) +
                                     " devices");
    }
    for (Node& node : cluster.nodes) {
        // A shallow leaf is alone on the levels that it has no switch for.
        while (node.at.size() < depth) node.at.push_back(node.at.back());
    }
    dropCommon(cluster.nodes);
    cluster.levels.push_back({.name = "cluster"});
    for (std::size_t level = 0; level < cluster.nodes.front().at.size(); ++level) {
        cluster.levels.push_back({.name = "switch" + std::to_string(level)});
    }
    cluster.levels.push_back({.name = "node"});
    sortNodes(cluster);
    return cluster;
}

}  // namespace

Result<Cluster> clusterOfGroups(const std::vector<SlurmGroup>& groups, int devices) {
    return Tree(groups).cluster(devices);
}

}  // namespace isthmus::foreign
