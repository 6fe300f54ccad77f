#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/cluster/cluster.hpp"
#include "scheduler/search/matrices.hpp"
#include "scheduler/search/watch.hpp"
#include "scheduler/traffic/node_cost.hpp"

namespace isthmus::scheduler {

struct Question {
    Cluster cluster;
    Degrees wanted;  ///< 0 is free
    VolumesOf volumes;
    int keep = 1;  ///< how many degrees are answered, the best first
};

/// One answer: degrees, and a node for each rank.
struct Candidate {
    Degrees degrees;
    AxisBytes bytes;
    std::vector<int> nodeOfRank;
    NodeCost cost;
    /// What no assignment of these degrees goes below, in bytes.
    NodeCost bound;
    bool isOptimal = false;     ///< no assignment has a dearest node that is cheaper
    bool isSumOptimal = false;  ///< and none of those sends less in all
    std::string method;         ///< how it was found, and why it is the best if it is
};

struct SearchAnswer {
    std::vector<Candidate> best;
    std::uint64_t degreesTried = 0;
    std::uint64_t matrices = 0;  ///< of a regular tree that were looked at
    /// What no assignment of any allowed degrees goes below.
    std::int64_t lowerBound = 0;
    bool isOptimal = false;
    bool isComplete = true;  ///< it was not stopped
};

/// Searches for the assignment that has the cheapest dearest node, then sends least in all, then is
/// cheapest for the groups of the levels above. Regular trees: every matrix of every degrees.
/// Others: orders, packed blocks, local search. Either is improved on as long as the bound leaves
/// room, and branch and bound ends it where there are few items. Never dearer than any fixed order.
/// Deterministic, unless it is stopped. kUnsupported when no degrees have as many ranks as the
/// cluster has devices; the message says how many are unused or missing.
Result<SearchAnswer> search(const Question& question, const Watch& watch);

/// The best assignment for given degrees; `start` is one to begin with, if any.
Result<Candidate> searchAt(const Cluster& cluster, const Degrees& degrees, const AxisBytes& bytes,
                           const std::vector<int>* start, const Watch& watch);

}  // namespace isthmus::scheduler
