#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "scheduler/model/volumes.hpp"

namespace isthmus::scheduler {

/// What devices and links do in a second. A value; the defaults are an A100-80G in a DGX with one
/// 200 Gbit/s card for each device (NVIDIA datasheets), and the two fractions that are reached of
/// them, calibrated in tests/unit/scheduler/step_time_test.cc.
struct Rates {
    double operationsPerSecond = 312e12;    ///< bf16 matrix products
    double memoryBytesPerSecond = 2039e9;   ///< of a device
    double insideBytesPerSecond = 300e9;    ///< of one rank, each way, inside a node
    double insideLatencySeconds = 2e-6;     ///< of one message
    double cardBytesPerSecond = 200e9;      ///< of all cards of a node together, each way
    double communicatorBytesPerSecond = 0;  ///< most that one group gets of them; 0: no such limit
    double acrossLatencySeconds = 5e-6;
    double operationsReached = 0.72;  ///< of the operations, by large products
    double bytesReached = 0.66;       ///< of memory and links inside a node
    double cardReached = 0.9;  ///< of cards: Calculon's value for InfiniBand (systems/*.json)
    double overlapSlowdown = 1.1256;  ///< of what overlaps: Galvatron's measured overlap_coe
};

/// Where the groups of one span are.
struct SpanPlace {
    int nodes = 1;               ///< that a group touches; 1: inside
    int ranksOnNode = 1;         ///< of a group, on a node that has the most
    int groupsOnNode = 1;        ///< that use its cards at the same time
    bool isHierarchical = true;  ///< one copy leaves a node; else a flat ring with one exit
};

/// Where all groups of a job are; inside of one node unless said.
struct JobPlace {
    std::array<SpanPlace, 8> spans;
    bool pipeCrosses = false;        ///< from a stage to the next
    std::vector<bool> linkCrosses;   ///< the same by stage; empty: all as pipeCrosses
    std::vector<double> stageSpeed;  ///< of its devices over operationsPerSecond; empty: 1
    int pipeSendersOnNode = 1;       ///< that use a node's cards for it at the same time

    SpanPlace& operator[](Span span) { return spans[static_cast<std::size_t>(span)]; }
    const SpanPlace& operator[](Span span) const { return spans[static_cast<std::size_t>(span)]; }
};

/// Bytes a second that one of `groups` concurrent groups gets of a node's cards: an even share, or
/// what one communicator can take.
double cardShare(const Rates& rates, int groups);

/// Seconds of one call, alone but for the groups that share its cards.
double secondsOf(const Traffic& call, std::int64_t ranks, const SpanPlace& place,
                 const Rates& rates);

}  // namespace isthmus::scheduler
