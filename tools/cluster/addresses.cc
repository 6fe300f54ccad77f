#include "tools/cluster/addresses.hpp"

#include <fmt/core.h>

namespace isthmus::cluster {

std::string deviceOfCard(int card) {
    return fmt::format("eth{}", card);
}

std::string bridgeOfCard(int card) {
    return fmt::format("br{}", card);
}

std::string addressOfNode(int node, int card) {
    return fmt::format("10.77.{}.{}", card, node + 1);
}

std::string address6OfNode(int node, int card) {
    return card == 0 ? fmt::format("fd77::{:x}", node + 1)
                     : fmt::format("fd77:{:x}::{:x}", card, node + 1);
}

std::string hostNameOfNode(int node) {
    return fmt::format("node{}", node);
}

std::string portOfNode(int node, int card) {
    return card == 0 ? fmt::format("port{}", node) : fmt::format("port{}c{}", node, card);
}

}  // namespace isthmus::cluster
