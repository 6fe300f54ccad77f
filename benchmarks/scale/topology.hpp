#pragma once

#include <string>
#include <vector>

#include "comm/algorithm/catalogue.hpp"
#include "comm/cost/link_model.hpp"

namespace isthmus::scale {

/// What the machines of a study are like; assumed, and said in its output.
struct Machines {
    double gigabits = 100;        ///< of one card
    double oversubscription = 4;  ///< of the links of racks, and of the spine between rails
    int rackNodes = 4;            ///< nodes of a rack where nodes have several ranks
    int rackRanks = 16;           ///< and where they have one
};

/// A job on a network.
struct Topology {
    std::string name;
    Layout layout;  ///< with racks, which the simulator goes by
    Layout known;   ///< what the selector knows: racks whose links are slower than cards only
    LinkModel model;
    bool isFree = true;  ///< only cards hold anybody up: closed forms apply
};

/// Racks of a fat tree with links as wide as their cards together ("fat_tree") or narrower
/// ("fat_tree_narrow"); nodes with a card for each rank on rails, whose spine is as wide as all
/// cards ("rails") or narrower ("rails_narrow"). Rails need several ranks a node.
std::vector<std::string> topologyNames();
Topology topologyOf(const std::string& name, int ranks, int ranksOfNode, const Machines& machines);

/// Ranks of a rack, which is what the simulator takes for all others like it.
int ranksOfRack(int ranksOfNode, const Machines& machines);

}  // namespace isthmus::scale
