#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <isthmus/status.hpp>

#include "tools/cli/node_spec.hpp"
#include "tools/cluster/rate.hpp"

namespace isthmus::cli {

/// What `isthmus run` was asked for.
struct LaunchPlan {
    NodeSpec nodes;
    NodeSpec::Order order = NodeSpec::Order::kBlock;
    bool isEmulated = false;
    std::string clusterName;  ///< of one that is up already; empty: make one and end it
    cluster::CardRates rates;
    int mtu = 1500;
    std::vector<std::string> command;
    bool hasPrefix = true;
    std::chrono::milliseconds grace{5000};  ///< between SIGTERM and SIGKILL
    std::optional<std::chrono::milliseconds> limit;
};

/// Where one rank is in its job.
struct RankPlace {
    int rank = 0;
    int ranks = 1;
    int node = 0;
    int nodes = 1;
    int localRank = 0;
    int localRanks = 1;
    int rack = -1;  ///< -1: none are said
};

std::vector<RankPlace> placeRanks(const NodeSpec& nodes, NodeSpec::Order order);

/// Where the ranks of a job meet.
struct MeetingPlace {
    std::string store;          ///< ISTHMUS_STORE
    std::string masterAddress;  ///< for torch's own store, which rank 0 serves
    int masterPort = 0;
    int jobKeyFd = -1;
    std::string runId;
    int cards = 0;  ///< of each emulated node; 0: they are not emulated
};

using Variables = std::vector<std::pair<std::string, std::string>>;

/// A process that carries this variable with the run's id belongs to the run.
inline constexpr const char* kRunIdVariable = "_ISTHMUS_RUN";

/// Our own variables and torchrun's, so that programs for either start unchanged.
Variables variablesOf(const RankPlace& place, const MeetingPlace& meeting);

/// Variables of other launchers that we may have been started by: they would contradict ours.
const std::vector<std::string>& foreignVariables();

}  // namespace isthmus::cli
