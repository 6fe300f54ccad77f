#pragma once

#include <vector>

#include "comm/algorithm/group.hpp"
#include "comm/plan/builder.hpp"

namespace isthmus {

/// How the ranks of one node see each other's contributions and pass results around: straight in
/// each other's input and output (Mapping::kAll, "direct"), or through shared scratch
/// (Mapping::kShared, "staged"). The steps between are the same, and so are the messages to other
/// nodes. Between the two (Mapping::kRead) contributions are copied straight from their inputs and
/// results held in shared scratch.
///
/// Shared slots are numbered like the chunks of the collective's larger side (input of
/// reduce-scatter, output of all-gather, ...), so every rank of the node has the same ones.
class NodeLevel {
public:
    /// `slots`: what shared scratch has room for, when staged (none: nothing is held there).
    NodeLevel(PlanBuilder& plan, const Group& node, const std::vector<ChunkName>& slots);

    const Group& group() const { return node_; }
    /// Results are held in shared scratch; contributions too, unless they can be read.
    bool isStaged() const { return isStaged_; }
    bool canRead() const { return canRead_; }
    /// Contributions are copied to shared scratch before others see them.
    bool copiesInputs() const { return isStaged_ && !canRead_; }

    /// Opens my input to the node's ranks. `forOthers` are the chunks that they will read.
    void offerInput(const Chunks& forOthers);
    /// Opens my memory, all that has been written so far.
    void signalAll();
    void waitForAll();
    void meet();

    /// Input of rank q after its offer; mine needs none. To be copied only where canRead().
    Slice inputOf(Rank rank, const Chunks& chunks) const;
    /// target = sum of the node's inputs, those of others through scratch where canRead(). Needs
    /// everybody's offer.
    void sumInputs(const Slice& target, const Chunks& chunks, Completes completes);

    /// Where a rank leaves results that the node's ranks will get: its output, or shared.
    Slice held(const Chunks& chunks) const { return heldBy(plan_.me(), chunks); }
    Slice heldBy(Rank rank, const Chunks& chunks) const;
    Place heldPlace() const;

    /// Copies what `from` holds of these output chunks to the other ranks. Direct only; they must
    /// have opened their memory.
    void push(const Chunks& chunks, const Slice& from);
    /// Copies the chunks that each position holds (`of[position]`) to my output, from the
    /// `nearest`-th position after mine on. Staged only; they must have signalled.
    void pull(const std::vector<Chunks>& of, int nearest = 0);

    /// Gives everybody everything after results are held: pushes or pulls, and meets so that memory
    /// may be left. Direct needs waitForAll() before.
    void spread(const std::vector<Chunks>& of);

private:
    PlanBuilder& plan_;
    Group node_;
    bool canRead_;
    bool isStaged_;
};

/// Slot names of blocks 0 to blocks - 1 (all-to-all: of my blocks for each of the given ranks; the
/// only slots whose names differ between ranks, so with counts their owner says where they are).
std::vector<ChunkName> blockNames(const PlanBuilder& plan, int blocks);
std::vector<ChunkName> allToAllNames(const PlanBuilder& plan, const Group& destinations);

}  // namespace isthmus
