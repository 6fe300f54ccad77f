#pragma once

#include <cstdint>
#include <vector>

#include "comm/plan/plan.hpp"

namespace isthmus {

/// A Plan with what an Execution needs at hand: successors, counts, numbers of messages and
/// signals. Immutable, shared by all Executions of it.
struct CompiledPlan {
    /// One peer of a signal or wait step.
    struct Peer {
        Rank rank = 0;
        int position =
            -1;  ///< in my node; -1: on another node, so a message of 0 bytes stands for the signal
        std::uint32_t ordinal =
            0;  ///< n-th signal to (wait for) this peer in program order, from 0
    };
    struct Node {
        /// What each location of the step holds, in the order of its slices: sizes follow from it.
        std::vector<ChunkName> targetNames;
        std::vector<std::vector<ChunkName>> sourceNames;
        std::vector<int> next;       ///< steps that depend on this one
        std::uint32_t waitsFor = 0;  ///< steps that this one depends on
        std::uint32_t message = 0;   ///< send, recv: n-th of (peer, channel, direction)
        std::vector<Peer> peers;     ///< signal, wait
        std::vector<Slice> also;     ///< reduce: where its result goes too, in the same pass
        bool isFused = false;        ///< copy: done by a reduce
    };

    Plan plan;
    std::vector<Node> nodes;
    std::vector<int> first;                ///< steps that depend on nothing
    std::vector<std::uint32_t> signalsTo;  ///< per position of my node
    std::vector<std::uint32_t> waitsOn;    ///< per position of my node
    std::vector<int> positionOf;           ///< of each rank in my node, -1 elsewhere
    bool usesMessages = false;
    /// The signal of a plan that meets all of its node once, and needs no place of its own for
    /// what it shows there (Plan::sharedOutlivesCall), or shows nothing; -1: other plans.
    int meetsAt = -1;

    bool meetsOnce() const { return meetsAt >= 0; }

    /// `positionInNode[rank]`: place among my node's ranks, -1 elsewhere.
    static CompiledPlan of(Plan plan, const std::vector<int>& positionInNode, int nodeRanks);
};

/// Fills the names of every node. A slot of scratch may hold chunks of different widths in turn, so
/// what it holds is found from the values that flow through it: locations that meet at one place of
/// a step hold the same chunk.
void nameValues(CompiledPlan& compiled);

/// Channel on which a signal to another node travels as a message of no bytes.
inline constexpr std::uint16_t kSignalChannel = 0xffff;

}  // namespace isthmus
