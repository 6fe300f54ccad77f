#pragma once

#include <string>
#include <utility>
#include <vector>

#include <isthmus/status.hpp>

#include "comm/base/knobs.hpp"
#include "topology/model/snapshot.hpp"

namespace isthmus::cli {

/// Whether a transport can serve on this node, and why (not).
struct TransportFact {
    std::string name;
    bool isUsable = false;
    std::string why;
};

std::vector<TransportFact> transportFacts(const NodeSnapshot& node, const Options& options);

/// What this program was built with and runs on: name and version.
std::vector<std::pair<std::string, std::string>> versionFacts();

}  // namespace isthmus::cli
