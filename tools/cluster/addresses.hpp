#pragma once

#include <string>

namespace isthmus::cluster {

// Every cluster has the same addresses: its network is its own.
inline constexpr int kMaxNodes = 200;

/// A node's n-th card, and the bridge that joins the n-th cards of all nodes: eth0, br0.
std::string deviceOfCard(int card);
std::string bridgeOfCard(int card);

/// Node 0 is 10.77.0.1 and fd77::1; with its second card 10.77.1.1 and fd77:1::1.
std::string addressOfNode(int node, int card = 0);
std::string address6OfNode(int node, int card = 0);

/// Where a service for all nodes listens: not on any node, so it costs no node's card.
inline constexpr const char* kBridgeAddress = "10.77.0.254";
inline constexpr const char* kBridgeAddress6 = "fd77::fe";

inline constexpr int kPrefixBits = 24;
inline constexpr int kPrefixBits6 = 64;

std::string hostNameOfNode(int node);

/// The bridge's end of a node's cable.
std::string portOfNode(int node, int card = 0);

}  // namespace isthmus::cluster
