#include "comm/reduce/user_reduction.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "comm/base/assert.hpp"

namespace isthmus {

namespace {

// Sums are formed aside: `inout` must be ours, and a target may be a source that is still to be
// read. Two blocks are half of the smallest first-level cache in use (32 KB), and long enough for
// a call through a pointer not to count.
constexpr std::size_t kBlockBytes = 8 << 10;

}  // namespace

void reduceByUser(const UserReduction& reduction, DataType type, std::span<void* const> targets,
                  std::span<const void* const> sources, std::size_t elements) {
    ISTHMUS_ASSERT(!sources.empty() && !targets.empty());
    alignas(64) std::array<std::byte, kBlockBytes> blocks[2];
    const std::size_t width = bytesOf(type);
    const std::size_t most = kBlockBytes / width;
    for (std::size_t done = 0; done < elements; done += most) {
        const std::size_t count = std::min(most, elements - done);
        const std::size_t offset = done * width;
        const auto from = [&](const void* source) {
            return static_cast<const std::byte*>(source) + offset;
        };
        std::memcpy(blocks[0].data(), from(sources.front()), count * width);
        std::byte* sum = blocks[0].data();
        for (std::size_t at = 1; at < sources.size(); ++at) {
            std::byte* const next = blocks[at % 2].data();
            std::memcpy(next, from(sources[at]), count * width);
            reduction.combine(sum, next, count, type);
            sum = next;
        }
        for (void* const target : targets)
            std::memcpy(static_cast<std::byte*>(target) + offset, sum, count * width);
    }
}

}  // namespace isthmus
