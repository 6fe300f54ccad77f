#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <isthmus/status.hpp>

namespace isthmus::scheduler {

/// What joins the members of a group of the tree: racks of a cluster, nodes of a rack, devices of a
/// node. A rate of 0 is unknown.
struct Level {
    std::string name;
    double latencySeconds = 0;
    double bitsPerSecond = 0;     ///< of one member, each way; for nodes their cards say it
    double oversubscription = 1;  ///< what the members could send over what leaves the group

    bool operator==(const Level&) const = default;
};

struct Card {
    std::string name;
    double bitsPerSecond = 0;  ///< each way; 0 is unknown
    int rail = 0;              ///< cards of one rail meet without the spine

    bool operator==(const Card&) const = default;
};

/// A place for one rank.
struct Device {
    int index = 0;              ///< on its node, holes counted: what CUDA_VISIBLE_DEVICES would say
    double flopsPerSecond = 0;  ///< 0 is unknown
    std::int64_t memoryBytes = 0;     ///< 0 is unknown
    double memoryBytesPerSecond = 0;  ///< 0 is unknown

    bool operator==(const Device&) const = default;
};

struct Node {
    std::string name;
    std::vector<std::string> at;  ///< the groups it is in, outermost first: {"pod0", "rack3"}
    std::vector<Device> devices;  ///< that can be used, by index; a lost one is not here
    std::vector<Card> cards;

    int size() const { return static_cast<int>(devices.size()); }
    double bitsPerSecond() const;
    bool operator==(const Node&) const = default;
};

/// The machines of a job as a tree, in an order that does not depend on how they were listed:
/// groups and names as people count (node7 before node66).
struct Cluster {
    std::vector<Level> levels;  ///< outermost first; the last is inside a node
    std::vector<Node> nodes;
    double communicatorBitsPerSecond = 0;  ///< most that one communicator gets of a node; 0: all

    int ranks() const;
    std::vector<int> sizes() const;
    /// "4x8", "3+3+2", "8x16x128".
    std::string text() const;
    bool operator==(const Cluster&) const = default;
};

/// Members of every group by level, outermost first ({8, 16, 128}: 8 racks of 16 nodes of 128
/// devices); empty when groups of one level differ, or cards.
std::vector<int> regularShape(const Cluster& cluster);

/// Whether `left` comes before `right` when digits count as numbers.
bool comesBefore(std::string_view left, std::string_view right);

/// Sorts nodes by their groups and names.
void sortNodes(Cluster& cluster);

/// Reads `MxR`, `R+R+...`, `2x4+1` and `AxBxR` (A racks of B nodes of R devices); every node gets
/// one card of `bitsPerSecond`. Nodes are node0, node1, ... kInvalidArgument says what is wrong and
/// what the grammar is.
Result<Cluster> clusterOf(std::string_view nodes, double bitsPerSecond = 0);

/// Reads the JSON of scheduler/schema/topology.schema.json. kConfiguration names the path that is
/// wrong.
Result<Cluster> clusterFromJson(const std::string& text);
/// The same from a file.
Result<Cluster> clusterFromFile(const std::string& path);
/// What clusterFromJson reads; `indent` of -1 is one line.
std::string toJson(const Cluster& cluster, int indent = 2);

/// The cluster without `lost`: "node1" or "node1:3". kInvalidArgument when there is no such thing.
Result<Cluster> without(const Cluster& cluster, const std::string& lost);

/// What a cluster may have at most: as many ranks as anybody has started in one job, and ten times
/// that.
inline constexpr int kMostRanks = 1 << 20;

}  // namespace isthmus::scheduler
