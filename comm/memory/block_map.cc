#include "comm/memory/block_map.hpp"

#include <algorithm>
#include <iterator>

#include "comm/base/assert.hpp"

namespace isthmus {

namespace {

std::uint64_t roundUp(std::uint64_t value, std::uint64_t step) {
    return (value + step - 1) / step * step;
}

}  // namespace

BlockMap::BlockMap(std::uint64_t capacity) {
    ISTHMUS_ASSERT(capacity % kUnit == 0);
    if (capacity != 0) addFree({0, capacity});
}

void BlockMap::addFree(Range range) {
    free_.emplace(range.begin, range.end);
    freeBySize_.emplace(range.end - range.begin, range.begin);
}

void BlockMap::removeFree(Range range) {
    free_.erase(range.begin);
    freeBySize_.erase({range.end - range.begin, range.begin});
}

std::optional<std::uint64_t> BlockMap::take(std::uint64_t bytes, std::uint64_t alignment) {
    if (freeBySize_.empty() || bytes > freeBySize_.rbegin()->first) return std::nullopt;
    const std::uint64_t wanted = std::max(roundUp(bytes, kUnit), kUnit);
    const std::uint64_t step = std::max(alignment, kUnit);
    for (auto at = freeBySize_.lower_bound({wanted, 0}); at != freeBySize_.end(); ++at) {
        const Range hole{at->second, at->second + at->first};
        const std::uint64_t begin = roundUp(hole.begin, step);
        if (begin > hole.end || hole.end - begin < wanted) continue;
        removeFree(hole);
        if (begin != hole.begin) addFree({hole.begin, begin});
        if (begin + wanted != hole.end) addFree({begin + wanted, hole.end});
        used_.emplace(begin, begin + wanted);
        usedBytes_ += wanted;
        return begin;
    }
    return std::nullopt;
}

BlockMap::Freed BlockMap::give(std::uint64_t offset) {
    const auto taken = used_.find(offset);
    ISTHMUS_ASSERT(taken != used_.end());
    const Range block{taken->first, taken->second};
    used_.erase(taken);
    usedBytes_ -= block.end - block.begin;

    Range hole = block;
    const auto after = free_.lower_bound(block.begin);
    if (after != free_.begin() && std::prev(after)->second == block.begin) {
        hole.begin = std::prev(after)->first;
    }
    if (after != free_.end() && after->first == block.end) hole.end = after->second;
    if (hole.begin != block.begin) removeFree({hole.begin, block.begin});
    if (hole.end != block.end) removeFree({block.end, hole.end});
    addFree(hole);
    return {block, hole};
}

}  // namespace isthmus
