#pragma once

#include <span>
#include <string>
#include <vector>

#include "scheduler/cluster/cluster.hpp"
#include "scheduler/model/volumes.hpp"
#include "scheduler/time/rates.hpp"

namespace isthmus::scheduler {

/// Rates of a cluster as a whole: of its slowest device and its slowest cards.
struct ClusterRates {
    Rates rates;
    std::vector<std::string>
        assumed;  ///< what the topology does not say, and what is taken instead
};

ClusterRates ratesOf(const Cluster& cluster);

/// Where the groups of a job are: the worst of each span.
JobPlace placeOf(const AxisVolumes& volumes, const Cluster& cluster,
                 std::span<const int> nodeOfRank);

/// Of the devices that have the ranks of each stage, the slowest and the smallest. 0: unknown.
struct StageDevice {
    double flopsPerSecond = 0;
    std::int64_t memoryBytes = 0;

    bool operator==(const StageDevice&) const = default;
};
std::vector<StageDevice> devicesOfStages(const Cluster& cluster, std::span<const int> nodeOfRank,
                                         int stages);

}  // namespace isthmus::scheduler
