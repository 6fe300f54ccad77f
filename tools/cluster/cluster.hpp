#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <isthmus/status.hpp>

#include "comm/base/unique_fd.hpp"
#include "tools/cluster/state.hpp"

namespace isthmus::cluster {

/// Emulated nodes on this machine: each has its own network, host name, processes, shared memory
/// and identity files, and cards of chosen rates, each on a bridge with those of the others.
struct ClusterPlan {
    std::string name;
    std::string shape;  ///< for people: the text the nodes were asked with
    int nodes = 2;
    int mtu = 1500;
    CardRates rates;
    std::uint64_t sharedMemoryBytes = 0;
};

struct MadeCluster {
    ClusterState state;
    UniqueFd lifeline;  ///< the cluster dies when this closes, unless cutLoose() came first
};

/// Makes it and waits until every node is complete. On failure nothing is left.
/// Errors: kInvalidArgument (name taken, too many nodes), kUnsupported (what the kernel refused).
Result<MadeCluster> makeCluster(StateStore& store, const ClusterPlan& plan);

/// Lets the cluster outlive this process.
Status cutLoose(MadeCluster& made);

/// Kills everything inside and forgets the record. Also right after a crash.
Status destroyCluster(StateStore& store, const ClusterState& state);

/// Changes the rates of one node's cards, or of all (no node), while they are in use. One rate is
/// for all cards, else there is one for each.
Status changeRates(StateStore& store, ClusterState& state, const CardRates& rates,
                   std::optional<int> node);

struct CardCounters {
    std::uint64_t receivedBytes = 0;
    std::uint64_t sentBytes = 0;
};

/// Of the node's cards together, headers included; nothing when the node is gone.
std::optional<CardCounters> readCounters(const NodeState& node);

}  // namespace isthmus::cluster
