#pragma once

#include <cstdint>

#include "comm/plan/plan.hpp"

namespace isthmus {

/// floor(elements * part), without overflow as long as numerator * denominator fits 63 bits.
std::int64_t floorOf(std::int64_t elements, const Fraction& part);

/// A run of elements.
struct ElementRun {
    std::int64_t offset = 0;
    std::int64_t elements = 0;

    bool operator==(const ElementRun&) const = default;
};

/// Segment `segment` of `segments` of a block of `elements`: [floor(n g / k), floor(n (g + 1) /
/// k)).
ElementRun segmentOf(std::int64_t elements, int segment, int segments);

/// Chunk `chunk` (0 to chunksPerBlock() - 1) of that segment; offset from the block's beginning.
ElementRun chunkOf(const Chunking& chunking, int chunk, std::int64_t elements, int segment = 0,
                   int segments = 1);

/// Room of a scratch slot named `like` for a block of `elements`: ceil(width of that chunk). Every
/// chunk of the same block that is not wider fits, whatever its roundings.
std::int64_t slotElements(const Chunking& chunking, int chunk, std::int64_t elements);

/// True when a value named `value` fits a slot named `slot` for all block sizes: same block, not
/// wider.
bool fitsSlot(const Chunking& chunking, const ChunkName& value, const ChunkName& slot);

/// A block cut at every multiple of 1 / `parts`.
Chunking evenChunking(int parts);

}  // namespace isthmus
