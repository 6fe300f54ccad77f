#include "tools/cluster/addresses.hpp"

#include <fmt/core.h>

namespace isthmus::cluster {

std::string addressOfNode(int node) {
    return fmt::format("10.77.0.{}", node + 1);
}

std::string address6OfNode(int node) {
    return fmt::format("fd77::{:x}", node + 1);
}

std::string hostNameOfNode(int node) {
    return fmt::format("node{}", node);
}

std::string portOfNode(int node) {
    return fmt::format("port{}", node);
}

}  // namespace isthmus::cluster
