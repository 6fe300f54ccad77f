#pragma once

#include <string>
#include <vector>

#include <isthmus/types.hpp>

namespace isthmus::cli {

/// One transport between two ranks, as both ends tried it.
struct WayBetween {
    std::string transport;
    bool isProven = false;
    double latencySeconds = 0;  ///< one way; 0: not measured
    double bytesPerSecond = 0;  ///< one way
    std::string why;            ///< why it is not chosen; of the chosen one: why it is not proved
};

/// What two ranks use, and what they could.
struct PairReach {
    Rank one = 0;  ///< the lower
    Rank other = 0;
    bool isOneNode = false;
    std::string chosen;  ///< empty: nothing leads there
    std::vector<WayBetween> ways;

    const WayBetween* way(const std::string& transport) const;
    bool isHealthy() const;
};

struct RankReach {
    std::string place;
    std::vector<std::string> transports;  ///< that it has
    std::vector<WayBetween> missing;      ///< that it was asked for and has not
};

struct ClusterReach {
    std::vector<RankReach> ranks;
    std::vector<PairReach> pairs;

    bool isHealthy() const;
};

/// Pairs of which everything but the figures is alike are told together.
std::string reachText(const ClusterReach& reach);
std::string reachJson(const ClusterReach& reach);

/// Rounds in which every rank meets every other once: the partner of each rank, or -1.
std::vector<std::vector<Rank>> roundsOf(int ranks);

}  // namespace isthmus::cli
