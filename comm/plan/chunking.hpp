#pragma once

#include <cstdint>

#include "comm/plan/plan.hpp"

namespace isthmus {

/// floor(elements * part), without overflow as long as numerator * denominator fits 63 bits.
std::int64_t floorOf(std::int64_t elements, const Fraction& part);

/// A run of elements.
struct Run {
    std::int64_t offset = 0;
    std::int64_t elements = 0;

    bool operator==(const Run&) const = default;
};

/// Segment `segment` of `segments` of a block of `elements`: [floor(n g / k), floor(n (g + 1) /
/// k)).
Run segmentOf(std::int64_t elements, int segment, int segments);

/// Chunk `chunk` (0 to chunksPerBlock() - 1) of that segment; offset from the block's beginning.
Run chunkOf(const Chunking& chunking, int chunk, std::int64_t elements, int segment = 0,
            int segments = 1);

/// A block cut at every multiple of 1 / `parts`.
Chunking evenChunking(int parts);

}  // namespace isthmus
