#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include <isthmus/status.hpp>

#include "comm/plan/operand.hpp"
#include "comm/plan/plan.hpp"

namespace isthmus {

/// Chunk numbers of one piece, and the piece of each position of a group.
using Chunks = std::vector<int>;
using Pieces = std::vector<Chunks>;

/// Where a level reads or leaves chunks: input, output, a staged slot, a peer's memory.
using Place = std::function<Slice(const Chunks&)>;

/// The memory of one rank. Naming a peer's is legal only on one node and where mapped; finish()
/// checks.
class At {
public:
    explicit At(Rank rank) : rank_(rank) {}

    Slice input(const Chunks& chunks) const { return slice(Buffer::kInput, chunks); }
    Slice output(const Chunks& chunks) const { return slice(Buffer::kOutput, chunks); }
    Slice shared(const Chunks& slots) const { return slice(Buffer::kShared, slots); }
    Slice shared(int slot) const { return {{rank_, Buffer::kShared, slot}}; }

private:
    Slice slice(Buffer buffer, const Chunks& chunks) const;

    Rank rank_;
};

/// Says whether a reduce (or a copy where there is one contributor only) leaves every contributor
/// in its result: avg scales there, exactly once on the way to each output chunk.
enum class Completes : std::uint8_t { kNo, kYes };

/// What an author of an algorithm sees: six verbs, the buffers, no edges. One rank, one thread.
/// Mistakes are remembered and told by finish(); steps with empty slices are dropped (both sides
/// of a message must agree on that).
class PlanBuilder {
public:
    PlanBuilder(Collective collective, Rank me, int ranks, Rank root, Chunking chunking,
                std::vector<int> nodeOfRank, Mapping mapping);

    Rank me() const { return plan_.me; }
    int ranks() const { return plan_.ranks; }
    Rank root() const { return plan_.root; }
    int chunksPerBlock() const { return plan_.chunking.chunksPerBlock(); }
    Mapping mapping() const { return plan_.mapping; }

    At at(Rank rank) const { return At(rank); }
    Place input() const;   ///< mine
    Place output() const;  ///< mine
    Place shared() const;  ///< mine

    /// What the locations hold or will hold, to size scratch like them. Empty names for locations
    /// that do not exist (finish() tells).
    std::vector<ChunkName> like(const Slice& slice) const;

    /// Fresh slots of mine, one for each name; a peer may not touch them.
    Slice grabScratch(const std::vector<ChunkName>& like);

    /// Fresh slots that node peers map; every rank of the node grabs the same names in the same
    /// order, so that slot i here is at(q).shared(i) there.
    Slice grabShared(const std::vector<ChunkName>& like);

    void copy(const Slice& target, const Slice& source, Completes completes = Completes::kNo);
    /// target[i] = sources[0][i] + sources[1][i] + ..., left to right.
    void reduce(const Slice& target, const std::vector<Slice>& sources, Completes completes);
    void send(Rank peer, const Slice& slice, int channel = 0);
    void recv(Rank peer, const Slice& slice, int channel = 0);
    /// Release and acquire fences; I am dropped from `peers`, nobody left means no step.
    void signal(std::span<const Rank> peers);
    void wait(std::span<const Rank> peers);
    void meet(std::span<const Rank> group);

    PlanBuilder& setAlgorithm(std::string name);
    /// Said by algorithms that read input after parts of output are written (direct all-to-all).
    PlanBuilder& setInPlaceSafe(bool isSafe);
    PlanBuilder& setSharedOutlivesCall(bool outlives);
    /// Before any step: like() and finish() ask which locations there are.
    PlanBuilder& setSumming(std::vector<Rank> ranks);

    /// Checks every location and length, infers the edges. kInvalidArgument names the first
    /// mistake. The builder is empty afterwards.
    Result<Plan> finish();

private:
    void order(Verb verb, std::span<const Rank> peers);
    Slice grab(Buffer buffer, std::vector<ChunkName>& slots, const std::vector<ChunkName>& like);

    Plan plan_;
    std::vector<int> nodeOfRank_;
};

/// What finish() checks, for plans from elsewhere: peers, lengths, the table's locations, no write
/// to input, only mapped memory of node peers.
Status checkPlan(const Plan& plan, std::span<const int> nodeOfRank);

/// What plans of an all-to-all keep to, besides, so that blocks may differ in size: a rank knows
/// how large the blocks are that it sends and gets, and of its node's ranks where their block for
/// it lies. So nothing else moves, of peers' memory only that block, and signals stay inside the
/// node, since nodes may make different numbers of passes. kInvalidArgument names the first step
/// that does not.
Status checkUnequalBlocks(const Plan& plan, std::span<const int> nodeOfRank);

}  // namespace isthmus
