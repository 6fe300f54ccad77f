#include "benchmarks/scale/topology.hpp"

namespace isthmus::scale {
namespace {

// Two sockets of DDR5 and a fast transport. Only the growth with ranks is checked, not these.
LinkModel modelOf(const Machines& machines) {
    LinkModel model;
    model.wireBytesPerSecond = goodputOf(machines.gigabits * 1e9);
    model.wireLatencySeconds = 10e-6;
    model.messageSeconds = 2e-6;
    model.nodeBytesPerSecond = 200e9;
    model.reduceBytesPerSecond = 200e9;
    return model;
}

}  // namespace

std::vector<std::string> topologyNames() {
    return {"fat_tree", "fat_tree_narrow", "rails", "rails_narrow"};
}

int ranksOfRack(int ranksOfNode, const Machines& machines) {
    return ranksOfNode > 1 ? ranksOfNode * machines.rackNodes : machines.rackRanks;
}

Topology topologyOf(const std::string& name, int ranks, int ranksOfNode, const Machines& machines) {
    Topology topology;
    topology.name = name;
    std::vector<int> nodeOf;
    for (Rank rank = 0; rank < ranks; ++rank) nodeOf.push_back(rank / ranksOfNode);
    topology.layout = Layout::of(nodeOf);
    topology.known = topology.layout;
    std::vector<int> rackOf;
    const int rack = ranksOfRack(ranksOfNode, machines);
    const int nodes = ranks / ranksOfNode;
    for (int node = 0; node < nodes; ++node) rackOf.push_back(node * ranksOfNode / rack);
    topology.layout.racks = {rackOf};
    topology.isFree = name == "fat_tree" || name == "rails";
    LinkModel& model = topology.model = modelOf(machines);
    const double narrower = topology.isFree ? 1 : machines.oversubscription;
    if (name.starts_with("rails")) {
        model.cardsPerNode = ranksOfNode;
        model.railBytesPerSecond = model.wireBytesPerSecond * nodes / narrower;
    } else {
        const int cards = rack / ranksOfNode;
        model.rackBytesPerSecond = model.wireBytesPerSecond * cards / narrower;
        if (!topology.isFree) topology.known = topology.layout;
    }
    return topology;
}

}  // namespace isthmus::scale
