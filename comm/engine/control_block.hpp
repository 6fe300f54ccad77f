#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include "comm/engine/call.hpp"
#include "comm/transport/transport.hpp"

namespace isthmus {

/// Calls of one communicator that may be in flight at once on a node. Call s uses lane s mod
/// kLanes.
inline constexpr int kLanes = 8;
/// Offset of a buffer that peers cannot map.
inline constexpr std::uint64_t kNotMapped = ~std::uint64_t{0};

/// What one rank tells a node peer about the blocks between them, in an all-to-all with counts.
/// Bytes.
struct BlockNotice {
    std::uint64_t inputOffset = 0;  ///< of the block for that peer, in the teller's input
    std::uint64_t sent = 0;         ///< of it
    std::uint64_t received = 0;     ///< of the block that the teller expects from that peer
};

/// What one rank tells its node peers about one call. Written by its rank before `sequence`, read
/// by peers after. In a call that meets once (Meeting) the lane's inline area begins where the
/// offsets are, which it does not need: a few numbers then travel in the line that says that they
/// are there.
struct alignas(128) CallSlot {
    std::atomic<std::uint64_t> sequence{
        0};  ///< of the call + 1; release, pairs with the peers' acquire
    CallFingerprint fingerprint;
    std::uint64_t inputOffset = kNotMapped;
    std::uint64_t outputOffset = kNotMapped;
    std::uint64_t sharedOffset = kNotMapped;
    /// In its rank's own address space; for peers that read it through the system.
    std::uint64_t inputAddress = 0;
    bool canBeRead = false;  ///< at inputAddress, in this call
    /// Of the node's first rank: what it would have all do if they cannot be direct.
    bool prefersReading = false;
    // Of an all-to-all with counts.
    std::uint64_t largestBlock = 0;     ///< elements, of those between its rank and the node's
    std::uint64_t sharedSlotBytes = 0;  ///< from one slot of its shared scratch to the next
    bool isShown = false;               ///< its whole input is at shownInput()

    std::byte* inlineArea() { return reinterpret_cast<std::byte*>(&inputOffset); }
    /// One for each position of the node, in an all-to-all with counts.
    BlockNotice* blocks() { return reinterpret_cast<BlockNotice*>(this + 1); }
    const BlockNotice* blocks() const { return reinterpret_cast<const BlockNotice*>(this + 1); }
    /// Behind the notices.
    std::byte* shownInput(int nodeRanks) {
        return reinterpret_cast<std::byte*>(blocks()) + noticeBytes(nodeRanks);
    }
    static std::size_t noticeBytes(int nodeRanks) {
        return (static_cast<std::size_t>(nodeRanks) * sizeof(BlockNotice) + 63) / 64 * 64;
    }
};

/// Counters that rise with each signal to one peer: one line per writer and reader and lane.
struct alignas(128) SignalLine {
    std::atomic<std::uint64_t> raised[kLanes][kMaxWindow] = {};
};

/// A rank's page of one communicator, in its arena: only its rank writes it, its node peers map and
/// read it. Layout: ControlBlock, then one SignalLine for each position of the node, then each
/// lane's slot with its inline area.
struct alignas(128) ControlBlock {
    std::atomic<std::uint64_t> finished{0};  ///< all calls below this number are done here
    /// That its rank was last seen on: a hint for those who wait. On a line of its own, since they
    /// look at it in every call.
    alignas(128) std::atomic<int> cpu{-1};
    /// The position without which its rank, if it sleeps, cannot go on; -1: any may matter.
    std::atomic<int> awaits{-1};

    /// Room that a lane needs behind its slot for `shown` bytes that calls show there.
    static std::size_t inlineBytesFor(int nodeRanks, std::size_t shown) {
        return shown + CallSlot::noticeBytes(nodeRanks);
    }
    /// From one lane's slot to the next one's.
    static std::size_t laneBytes(std::size_t inlineBytes) {
        return (sizeof(CallSlot) + inlineBytes + alignof(CallSlot) - 1) / alignof(CallSlot) *
               alignof(CallSlot);
    }
    static std::size_t bytes(int nodeRanks, std::size_t inlineBytes) {
        return sizeof(ControlBlock) + static_cast<std::size_t>(nodeRanks) * sizeof(SignalLine) +
               kLanes * laneBytes(inlineBytes);
    }
    SignalLine& line(int position) { return reinterpret_cast<SignalLine*>(this + 1)[position]; }
    CallSlot& slot(int nodeRanks, std::size_t inlineBytes, int lane) {
        auto* const lanes = reinterpret_cast<std::byte*>(&line(nodeRanks));
        return *reinterpret_cast<CallSlot*>(lanes + static_cast<std::size_t>(lane) *
                                                        laneBytes(inlineBytes));
    }

    static ControlBlock* construct(void* memory, int nodeRanks, std::size_t inlineBytes) {
        auto* block = new (memory) ControlBlock;
        for (int i = 0; i < nodeRanks; ++i) new (&block->line(i)) SignalLine;
        for (int i = 0; i < kLanes; ++i) new (&block->slot(nodeRanks, inlineBytes, i)) CallSlot;
        return block;
    }
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free,
              "counters are shared between processes");

}  // namespace isthmus
