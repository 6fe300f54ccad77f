#include "comm/selector/reasons.hpp"

namespace isthmus {

std::string reasonOverNodes(std::string_view algorithm, const Layout& layout, bool keepsBound) {
    if (algorithm.find("three_level") != std::string_view::npos) {
        return "links between racks are slower: each carries what it must, once";
    }
    if (algorithm.find("ring") != std::string_view::npos) {
        return keepsBound ? "large messages over many nodes: neighbours only"
                          : "unequal nodes: an exchange would overload a big one";
    }
    if (algorithm.find("butterfly") != std::string_view::npos) {
        return "many nodes: few rounds and messages at the least bytes";
    }
    if (algorithm.find("double_tree") != std::string_view::npos) {
        return "many nodes and few passes: a chain of nodes would not fill";
    }
    if (algorithm.find("doubling") != std::string_view::npos) {
        return layout.nodes.size() == 2 ? "two nodes and a small shard: one round, same bytes"
                                        : "small: fewest rounds and messages, at more bytes";
    }
    if (algorithm == "two_level_leaders") {
        return "small: one message between two nodes, sent by one rank of each";
    }
    if (algorithm.find("node_first") != std::string_view::npos) {
        return "small blocks: those for a rank go together, same bytes";
    }
    if (algorithm.find("exchange") != std::string_view::npos) {
        return "few nodes or small messages: fewest rounds at the least bytes";
    }
    if (algorithm.find("owners") != std::string_view::npos) {
        return "cards differ: each node owns what its card can carry";
    }
    return "least bytes between nodes";
}

}  // namespace isthmus
