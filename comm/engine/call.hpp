#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <isthmus/types.hpp>

#include "comm/base/clock.hpp"
#include "comm/engine/compiled_plan.hpp"
#include "comm/engine/work.hpp"
#include "comm/reduce/user_reduction.hpp"
#include "comm/transport/transport.hpp"

namespace isthmus {

/// Elements of each block of a call (which blocks there are: plan.hpp, Chunking).
struct BlockCounts {
    std::size_t uniform = 0;  ///< every block, unless `each` is filled
    std::vector<std::size_t>
        each;  ///< all-gather, reduce-scatter, gather, scatter: one per rank, equal everywhere
    std::vector<std::size_t> sent;  ///< all-to-all: to each rank, packed in rank order in the input
    std::vector<std::size_t>
        received;  ///< all-to-all: from each rank, packed in rank order in the output
};

/// Segments of one call that may be active at once: what a node's signals have counters for.
inline constexpr int kMaxWindow = 8;

/// How a call will run: chosen above the Engine from agreed inputs, equal on every rank but for the
/// plans themselves.
struct PreparedPlans {
    int segments = 1;
    int segmentsWhenMapped = 1;  ///< instead, when the node runs the plan of kAll
    int window = 1;              ///< at most kMaxWindow
    /// Of an all-to-all with counts, whose ranks do not know how large the others' blocks are: a
    /// pass of a staged plan moves up to so much of each block inside the node, and the node makes
    /// as many passes as its largest one needs. 0: all in one.
    std::size_t pieceBytes = 0;
    /// By Mapping; kNone: messages only. When kAll and kShared are both there, the node decides
    /// when all have entered; kRead comes with them only, where the node's ranks can read each
    /// other (MembershipConfig::canRead).
    std::shared_ptr<const CompiledPlan> byMapping[kMappings];
    std::uint64_t digest = 0;    ///< of everything here that must agree
    std::uint8_t algorithm = 0;  ///< its place in the catalogue, from 1; 0: not from there

    bool dependsOnNode() const { return byMapping[1] != nullptr && byMapping[2] != nullptr; }
    const std::shared_ptr<const CompiledPlan>& of(Mapping mapping) const {
        return byMapping[static_cast<int>(mapping)];
    }
};

/// One collective as its caller asked for it. Buffers stay the caller's; they are untouched after
/// `work` is done.
struct CallRequest {
    Collective collective = Collective::kBarrier;
    DataType type = DataType::kUint8;
    ReduceOp op = ReduceOp::kSum;
    bool isPremultiplied = false;  ///< the input is the caller's times a factor of this rank
    std::shared_ptr<const UserReduction> reduction;  ///< instead of `op`, when there
    bool isDeterministic = false;                    ///< the same bits whatever carries it
    bool isWidened = false;                          ///< of 16-bit floats, to be rounded once
    std::uint64_t listDigest = 0;  ///< of the counts that make up this one, when coalesced
    Rank root = 0;
    const std::byte* input = nullptr;
    std::byte* output = nullptr;
    BlockCounts counts;
    Time deadline = Time::max();  ///< on the engine's clock
    Time limit{0};                ///< what the deadline was made from, for messages
    int priority = 0;
    std::string name;  ///< the user's, may be empty
    std::shared_ptr<const PreparedPlans> prepared;
    std::shared_ptr<Work> work;

    CallFingerprint fingerprint() const;

    CallRequest* nextQueued = nullptr;
};

/// "reduce f32 x 1000 sum root 12", for messages about calls that do not agree; `globalRanks`: of
/// each rank.
std::string describe(const CallFingerprint& fingerprint, std::span<const int> globalRanks);

/// The same for two that differ: with what else sets them apart where that text would be equal.
struct Contrast {
    std::string mine;
    std::string theirs;
    std::string hint;  ///< what may differ that no fingerprint shows; mostly empty
};
Contrast contrast(const CallFingerprint& mine, const CallFingerprint& theirs,
                  std::span<const int> globalRanks);

/// Bytes that this rank sends to `peer`, or wants from it, in an all-to-all with counts.
std::uint64_t blockBytes(const CallRequest& call, Rank peer, bool isSent);

/// One send or receive between two ranks.
struct PointToPointRequest {
    bool isSend = false;
    Rank peer = 0;  ///< -1: any source (receive)
    std::uint32_t tag = 0;
    std::byte* buffer = nullptr;  ///< only read when isSend
    std::size_t bytes = 0;
    Time deadline = Time::max();
    Time limit{0};
    int priority = 0;
    std::string name;
    std::shared_ptr<Work> work;
};

}  // namespace isthmus
