#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/cluster/cluster.hpp"

namespace isthmus::cli {

/// What a rank says of itself.
struct ProbeRank {
    int node = 0;  ///< by first rank
    int localRank = 0;
    std::string host;
    std::string card;            ///< between nodes; empty on one node
    std::int64_t unitBytes = 0;  ///< of the card (MTU); 0 is unknown
    std::string rack;
    std::int64_t memoryBytes = 0;  ///< of the node
    double flopsOfProcessor = 0;   ///< in a second of a processor's time
    double processorShare = 1;     ///< of the time, while all ranks compute
    int processors = 1;            ///< that the rank may use
    bool hasAccelerator = false;   ///< so that what the processor does says nothing
};

/// Payload bytes a second of one stream.
struct ProbeStream {
    int fromNode = 0;
    int toNode = 0;
    double bytesPerSecond = 0;
};

/// All that was measured; 0 is not.
struct ProbeReadings {
    std::vector<ProbeRank> ranks;
    std::vector<ProbeStream> alone;     ///< a pair of ranks at a time
    std::vector<ProbeStream> ofNodes;   ///< all ranks of a node together
    std::vector<ProbeStream> together;  ///< all nodes at once
    std::vector<double> insideBytesPerSecond;
    std::vector<double> insideLatencySeconds;
    std::vector<double> acrossLatencySeconds;
};

/// Steps in which every node meets others: neighbours at distance 1, 2, 4, ..., one way. The pairs
/// of a step share no card, and no more than a sixteenth of the nodes are busy in it.
std::vector<std::vector<std::pair<int, int>>> meetingsOf(int nodes);

/// Nodes whose card may be faster than anything that they met.
std::vector<int> uncertainNodes(const std::vector<double>& bytesPerSecond,
                                const std::vector<ProbeStream>& streams);

/// The best that a node sent or received.
std::vector<double> cardsOf(const std::vector<ProbeStream>& streams, int nodes);

/// Numbers of one kind that differ by less than `share` are one number: their median. Measured
/// equal nodes would else be unequal ones to a search.
std::vector<double> levelled(const std::vector<double>& values, double share);

/// What a card carries in a second on its line when it brings so much payload: TCP with time stamps
/// in packets of `unitBytes`, as a shaper counts them.
double lineBitsPerSecond(double bytesPerSecond, std::int64_t unitBytes);

scheduler::Cluster clusterOf(const ProbeReadings& readings);

/// A table for people.
std::string probeText(const ProbeReadings& readings, const scheduler::Cluster& cluster);

}  // namespace isthmus::cli
