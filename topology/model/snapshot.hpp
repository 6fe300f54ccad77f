#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <isthmus/status.hpp>

#include "topology/discover/container_limits.hpp"
#include "topology/discover/machine.hpp"
#include "topology/discover/net_device.hpp"
#include "topology/discover/rdma_device.hpp"

namespace isthmus {

/// All that is known about one node, as a value.
struct NodeSnapshot {
    std::string hostName;  ///< for people; it identifies nothing
    Machine machine;
    ContainerLimits limits;
    std::vector<NetDevice> netDevices;
    std::vector<RdmaPort> rdmaPorts;

    bool operator==(const NodeSnapshot&) const = default;
};

/// Looks at the node that this process runs on.
Result<NodeSnapshot> discoverNode();

/// JSON of one object; `indent` of -1 is one line.
std::string toJson(const NodeSnapshot& node, int indent = 2);

/// Reads what toJson wrote. Missing members keep the values of `base`, so that a user's file may
/// give only what it wants to change. kConfiguration names the member that is wrong.
Result<NodeSnapshot> nodeFromJson(std::string_view text, const NodeSnapshot& base = {});

/// discoverNode(), changed by the file `path` (ISTHMUS_TOPOLOGY) unless that is empty.
Result<NodeSnapshot> discoverNodeWith(const std::string& path);

}  // namespace isthmus
