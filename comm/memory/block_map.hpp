#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

namespace isthmus {

/// Which parts of [0, capacity) are taken: best fit, lowest offset first, neighbours joined. Knows
/// offsets only and keeps its books outside of what it hands out, so whoever shares that memory can
/// not spoil them. Single-threaded.
class BlockMap {
public:
    struct Range {
        std::uint64_t begin = 0;
        std::uint64_t end = 0;
    };

    /// Every block starts and ends at a multiple of this: a cache line.
    static constexpr std::uint64_t kUnit = 64;

    /// `capacity`: a multiple of kUnit.
    explicit BlockMap(std::uint64_t capacity);

    /// Offset of a block of `bytes` (0: as 1), a multiple of `alignment`; none when nothing fits.
    std::optional<std::uint64_t> take(std::uint64_t bytes, std::uint64_t alignment);

    struct Freed {
        Range block;  ///< what the block was
        Range hole;   ///< it and the free room on both sides of it
    };
    /// `offset` must come from take.
    Freed give(std::uint64_t offset);

    std::uint64_t usedBytes() const { return usedBytes_; }

private:
    void addFree(Range range);
    void removeFree(Range range);

    std::map<std::uint64_t, std::uint64_t> free_;                   // begin -> end
    std::set<std::pair<std::uint64_t, std::uint64_t>> freeBySize_;  // (bytes, begin)
    std::unordered_map<std::uint64_t, std::uint64_t> used_;         // begin -> end
    std::uint64_t usedBytes_ = 0;
};

}  // namespace isthmus
