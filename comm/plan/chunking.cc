#include "comm/plan/chunking.hpp"

namespace isthmus {

std::int64_t floorOf(std::int64_t elements, const Fraction& part) {
    const std::int64_t whole = elements / part.denominator;
    const std::int64_t rest = elements % part.denominator;
    return whole * part.numerator + rest * part.numerator / part.denominator;
}

ElementRun segmentOf(std::int64_t elements, int segment, int segments) {
    const std::int64_t from = floorOf(elements, {segment, segments});
    return {from, floorOf(elements, {segment + 1, segments}) - from};
}

ElementRun chunkOf(const Chunking& chunking, int chunk, std::int64_t elements, int segment,
                   int segments) {
    const ElementRun within = segmentOf(elements, segment, segments);
    const auto& cuts = chunking.cuts;
    const auto index = static_cast<std::size_t>(chunk);
    const std::int64_t from = floorOf(within.elements, cuts[index]);
    return {within.offset + from, floorOf(within.elements, cuts[index + 1]) - from};
}

namespace {

Fraction widthOf(const Chunking& chunking, int chunk) {
    const Fraction& from = chunking.cuts[static_cast<std::size_t>(chunk)];
    const Fraction& to = chunking.cuts[static_cast<std::size_t>(chunk) + 1];
    return {to.numerator * from.denominator - from.numerator * to.denominator,
            to.denominator * from.denominator};
}

}  // namespace

std::int64_t slotElements(const Chunking& chunking, int chunk, std::int64_t elements) {
    const Fraction width = widthOf(chunking, chunk);
    return elements - floorOf(elements, {width.denominator - width.numerator, width.denominator});
}

bool fitsSlot(const Chunking& chunking, const ChunkName& value, const ChunkName& slot) {
    if (value == slot) return true;
    if (value.block != slot.block) return false;
    const Fraction mine = widthOf(chunking, value.chunk);
    const Fraction room = widthOf(chunking, slot.chunk);
    return mine.numerator * room.denominator <= room.numerator * mine.denominator;
}

Chunking evenChunking(int parts) {
    Chunking chunking;
    chunking.cuts.clear();
    for (int i = 0; i <= parts; ++i) chunking.cuts.push_back({i, parts});
    return chunking;
}

}  // namespace isthmus
