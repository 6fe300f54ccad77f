#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <isthmus/status.hpp>

namespace isthmus::scheduler {

/// A chain of layers to be cut into stages that follow each other. By layer: seconds, bytes. By
/// stage: speed, capacity. Empty lists by stage: all alike, no limit.
struct ChainProblem {
    int stages = 1;
    std::vector<double> seconds;      ///< of a micro-batch, forward and backward, at speed 1
    std::vector<double> linkSeconds;  ///< of the message after a layer; empty: links are free
    std::vector<double> speed;        ///< of a stage's device, 1 unless said

    std::vector<std::int64_t> stateBytes;  ///< weights, gradients, optimizer; empty: no limits
    std::vector<std::int64_t> keptBytes;   ///< of one micro-batch in flight
    std::vector<std::int64_t> capacity;    ///< of a stage's device
    std::vector<std::int64_t> inFlight;    ///< micro-batches that a stage keeps
};

/// Stages of a chain: each has at least one layer.
struct ChainCut {
    std::vector<int> firstLayers;  ///< by stage
    double slowest = 0;            ///< seconds of the slowest stage, or of a slower link
    double sum = 0;                ///< seconds of all stages
    bool isExact = true;           ///< no other cut is better
};

/// The cut whose slowest stage is fastest; of those, one with the first stages full. Dynamic
/// program over stages and layers, exact.
/// kResource: no cut fits the capacities, and the message says which stage is short in the even
/// one. kInvalidArgument: lists that do not fit each other, more stages than layers.
Result<ChainCut> fastestCut(const ChainProblem& problem);

/// The cut with the least sum + (microBatches - 1) x slowest: Alpa's objective (Zheng et al., arXiv
/// 2201.12023, section 5). Exact unless more slowest stages would have to be tried than
/// `kMostPaces`, or than take about a second; then the best of those tried, evenly spread.
inline constexpr std::size_t kMostPaces = 4096;
Result<ChainCut> leastTimeCut(const ChainProblem& problem, std::int64_t microBatches);

/// Kinds of devices among which the stages may be dealt in any order.
struct DeviceKind {
    int devices = 0;
    double speed = 1;
    std::int64_t capacity = 0;  ///< 0: no limit
};

struct KindCut {
    ChainCut cut;
    std::vector<int> kinds;  ///< by stage
};

/// As fastestCut, over every order of the devices as well: exact. `problem.speed` and `.capacity`
/// are not read; all devices are used. kResource also: more than 2^20 ways of counting devices.
Result<KindCut> fastestCut(const ChainProblem& problem, const std::vector<DeviceKind>& kinds);

}  // namespace isthmus::scheduler
