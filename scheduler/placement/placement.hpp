#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scheduler/cluster/cluster.hpp"
#include "scheduler/prediction/rivals.hpp"
#include "scheduler/search/search.hpp"

namespace isthmus::scheduler {

/// Where a rank runs.
struct Seat {
    int node = 0;    ///< of Cluster::nodes
    int device = 0;  ///< Device::index

    auto operator<=>(const Seat&) const = default;
};

struct OrderCost {
    std::string name;
    NodeCost cost;
    std::optional<NodeCost> exact;  ///< of a model: every group as it is

    bool operator==(const OrderCost&) const = default;
};

/// The answer: who runs where, what that costs, how far from the best it is, and what the usual
/// orders would have cost. Ranks are numbered as Shape says.
struct Placement {
    Cluster cluster;
    Degrees degrees{1};
    PerAxis<bool> isNamed;  ///< axes that the user spoke of: the answer does too
    AxisBytes bytes;
    std::vector<Seat> seats;  ///< by rank
    NodeCost cost;
    NodeCost bound;
    bool isOptimal = false;
    bool isSumOptimal = false;
    std::string method;
    std::vector<OrderCost> orders;
    std::vector<Rival> rivals;            ///< of compare: the model trained in other ways
    std::optional<Prediction> predicted;  ///< of a model; nothing where bytes were given

    std::vector<int> nodeOfRank() const;
};

/// Gives the ranks of a node its devices in turn.
Placement placementOf(const Cluster& cluster, const Candidate& candidate,
                      const PerAxis<bool>& isNamed);

/// What the named orders cost, then the order in which a launcher that sorts host names as text
/// would have started them, then the best of all orders of the split axes. `volumes`: of a model,
/// for the exact bytes.
std::vector<OrderCost> costsOfOrders(const Cluster& cluster, const Degrees& degrees,
                                     const AxisBytes& bytes, const AxisVolumes* volumes = nullptr);

/// Groups of one axis, members in ring order: as they stand in the tree, a pipe by its stages.
std::vector<std::vector<int>> groupsOf(const Placement& placement, Axis axis);

/// JSON of scheduler/schema/placement.schema.json, a line a rank. `alternatives` are other degrees.
std::string toJson(const Placement& placement, const std::vector<Candidate>& alternatives,
                   const SearchAnswer* search);

/// Reads what toJson wrote; orders are computed again when asked for. kConfiguration names the path
/// that is wrong: also seats that the topology has not, or that two ranks have.
Result<Placement> placementFromJson(const std::string& text);
Result<Placement> placementFromFile(const std::string& path);

}  // namespace isthmus::scheduler
