#include "comm/plan/chunking.hpp"

namespace isthmus {

std::int64_t floorOf(std::int64_t elements, const Fraction& part) {
    const std::int64_t whole = elements / part.denominator;
    const std::int64_t rest = elements % part.denominator;
    return whole * part.numerator + rest * part.numerator / part.denominator;
}

Run segmentOf(std::int64_t elements, int segment, int segments) {
    const std::int64_t from = floorOf(elements, {segment, segments});
    return {from, floorOf(elements, {segment + 1, segments}) - from};
}

Run chunkOf(const Chunking& chunking, int chunk, std::int64_t elements, int segment, int segments) {
    const Run within = segmentOf(elements, segment, segments);
    const auto& cuts = chunking.cuts;
    const auto index = static_cast<std::size_t>(chunk);
    const std::int64_t from = floorOf(within.elements, cuts[index]);
    return {within.offset + from, floorOf(within.elements, cuts[index + 1]) - from};
}

Chunking evenChunking(int parts) {
    Chunking chunking;
    chunking.cuts.clear();
    for (int i = 0; i <= parts; ++i) chunking.cuts.push_back({i, parts});
    return chunking;
}

}  // namespace isthmus
