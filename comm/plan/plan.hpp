#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <isthmus/types.hpp>

namespace isthmus {

/// Where a Location lies. kShared is scratch that the node's peers map.
enum class Buffer : std::uint8_t { kInput, kOutput, kScratch, kShared };

/// One chunk of one buffer of one rank. Two Locations are the same or disjoint.
struct Location {
    Rank rank = 0;
    Buffer buffer = Buffer::kInput;
    int chunk = 0;

    auto operator<=>(const Location&) const = default;
};

struct LocationHash {
    std::size_t operator()(const Location& location) const {
        std::uint64_t key = static_cast<std::uint64_t>(location.rank) << 34U;
        key |= static_cast<std::uint64_t>(location.buffer) << 32U;
        key |= static_cast<std::uint32_t>(location.chunk);
        key *= 0x9E3779B97F4A7C15U;  // Fibonacci hashing, Knuth TAOCP 3, 6.4
        return key ^ (key >> 29U);
    }
};

/// What one step touches: an ordered list, not only a run.
using Slice = std::vector<Location>;

enum class Verb : std::uint8_t { kCopy, kReduce, kSend, kRecv, kSignal, kWait };

/// One act of one rank. `after` are indices of earlier steps of the same Plan.
struct Step {
    Verb verb = Verb::kCopy;
    Slice target;                ///< copy, reduce, recv
    std::vector<Slice> sources;  ///< copy and send: one; reduce: one or more, added left to right
    std::vector<Rank> peers;     ///< send, recv: one; signal, wait: any number
    int channel = 0;
    bool completes = false;  ///< reduce (or copy, when alone): its result holds every contributor;
                             ///< avg scales here
    std::vector<int> after;

    bool operator==(const Step&) const = default;
};

/// Which buffers of node peers a Plan may name as at(q). kRead: shared scratch, and inputs as the
/// source of a copy, which the system makes (process_vm_readv(2)).
enum class Mapping : std::uint8_t { kNone, kShared, kAll, kRead };
inline constexpr int kMappings = 4;

/// numerator / denominator, 0 to 1.
struct Fraction {
    std::int64_t numerator = 0;
    std::int64_t denominator = 1;

    bool operator==(const Fraction&) const = default;
};

/// How every block of a call is cut into chunks: chunk j of a block of n elements covers
/// [floor(n * cuts[j]), floor(n * cuts[j + 1])). cuts begins with 0 and ends with 1.
///
/// Blocks by collective (P ranks): all-reduce, reduce, broadcast: one block. all-gather, gather:
/// input one (mine), output P. reduce-scatter, scatter: input P, output one (mine). all-to-all: P
/// and P. Chunk index in a Location = block * chunksPerBlock() + j.
struct Chunking {
    std::vector<Fraction> cuts = {{0, 1}, {1, 1}};

    int chunksPerBlock() const { return static_cast<int>(cuts.size()) - 1; }
    bool operator==(const Chunking&) const = default;
};

/// One chunk of the logical operand, to size a scratch slot: chunk `chunk` (0 to chunksPerBlock -
/// 1) of block `block`. For all-to-all the block is (source * P + destination).
struct ChunkName {
    int block = 0;
    int chunk = 0;

    bool operator==(const ChunkName&) const = default;
};

/// One rank's steps and edges for one segment of one collective. A value: no pointer, byte count or
/// time in it.
struct Plan {
    Collective collective = Collective::kBarrier;
    Rank me = 0;
    int ranks = 1;
    Rank root = 0;
    /// Ranks of an all-reduce that only add, ascending: they have neither input nor output, and an
    /// average is that of the others.
    std::vector<Rank> summing;
    Mapping mapping = Mapping::kNone;
    std::string algorithm;  ///< catalogue name
    Chunking chunking;
    /// Size of each private slot: room for its chunk rounded up (slotElements() of chunking.hpp),
    /// so that one slot serves, in turn, all chunks of that block that are not wider.
    std::vector<ChunkName> scratch;
    std::vector<ChunkName> shared;  ///< size of each shared slot; same list on all ranks of a node
    bool inPlaceSafe = true;  ///< false: may not run when input and output are the same memory
    bool sharedOutlivesCall =
        false;  ///< exit closure is not needed for `shared`: the engine keeps it long enough
    std::vector<Step> steps;

    /// Ranks whose inputs a result is made of where collectives reduce.
    int contributors() const { return ranks - static_cast<int>(summing.size()); }

    /// That the steps name in all, each as often as it is named.
    std::size_t locations() const {
        std::size_t sum = 0;
        for (const Step& step : steps) {
            sum += step.target.size();
            for (const Slice& source : step.sources) sum += source.size();
        }
        return sum;
    }

    bool operator==(const Plan&) const = default;
};

}  // namespace isthmus
