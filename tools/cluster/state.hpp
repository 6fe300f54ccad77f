#pragma once

#include <string>
#include <vector>

#include <isthmus/status.hpp>

#include "tools/cluster/process.hpp"
#include "tools/cluster/rate.hpp"

namespace isthmus::cluster {

struct NodeState {
    ProcessIdentity init;  ///< pid 1 of the node, as this process sees it
    CardRates rates;
};

/// What other processes must know of a cluster. Its life is the keeper's: when that is gone, so is
/// everything else but this record.
struct ClusterState {
    std::string name;
    std::string shape;       ///< the node grammar's text, "2x2"
    ProcessIdentity keeper;  ///< pid 1 of the cluster; while starting, the process that starts it
    bool isReady = false;
    int mtu = 1500;
    std::vector<NodeState> nodes;
    std::vector<std::string> limits;  ///< what this machine could not do, for people

    bool isAlive() const { return keeper.isAlive(); }
};

/// One file a cluster, in /run/isthmus for root, in the user's run-time folder else. The folder
/// goes with its last file.
class StateStore {
public:
    static Result<StateStore> open();

    /// Makes the record; kInvalidArgument when a living cluster has the name. A dead one's record
    /// is replaced.
    Status claim(const ClusterState& state);
    Status save(const ClusterState& state);
    void remove(const std::string& name);

    /// kInvalidArgument, naming the clusters there are, when there is none of that name.
    Result<ClusterState> load(const std::string& name) const;
    std::vector<ClusterState> all() const;

    const std::string& folder() const { return folder_; }

private:
    explicit StateStore(std::string folder) : folder_(std::move(folder)) {}
    std::string pathOf(const std::string& name) const { return folder_ + "/" + name + ".json"; }

    std::string folder_;
};

/// Letters, digits, '-', '_' and '.', not first a '.'; at most 64.
bool isClusterName(const std::string& name);

}  // namespace isthmus::cluster
