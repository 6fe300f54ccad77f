#include "comm/memory/scratch_pool.hpp"

#include <algorithm>
#include <bit>

namespace isthmus {

namespace {

constexpr std::size_t kLeastBytes = 4096;
constexpr std::size_t kAlignment = 128;  // two cache lines: x86 fetches them in pairs

/// Four classes per power of two, so that at most a fifth of a block is waste.
struct SizeClass {
    std::size_t index;
    std::size_t bytes;
};

SizeClass classOf(std::size_t wanted) {
    const std::size_t bytes = std::max(wanted, kLeastBytes);
    const std::size_t power = std::bit_floor(bytes);
    const std::size_t quarter = power / 4;
    const std::size_t quarters = (bytes - power + quarter - 1) / quarter;  // 0 to 4
    const auto doublings =
        static_cast<std::size_t>(std::countr_zero(power) - std::countr_zero(kLeastBytes));
    return {doublings * 4 + quarters, power + quarters * quarter};
}

}  // namespace

ScratchPool::ScratchPool(Arena& arena, std::size_t keptLimitBytes)
    : arena_(arena),
      keptLimitBytes_(keptLimitBytes),
      kept_(classOf(std::max(arena.capacityBytes(), kLeastBytes)).index + 1) {}

ScratchPool::~ScratchPool() {
    trim();
}

Result<ScratchPool::Block> ScratchPool::take(std::size_t bytes) {
    if (bytes > arena_.capacityBytes()) return arena_.allocate(bytes).status();
    const SizeClass size = classOf(bytes);
    std::vector<std::byte*>& kept = kept_[size.index];
    if (!kept.empty()) {
        std::byte* const data = kept.back();
        kept.pop_back();
        keptBytes_ -= size.bytes;
        return Block{data, size.bytes};
    }
    Result<void*> fresh = arena_.allocatePopulated(size.bytes, kAlignment);
    if (!fresh.ok() && keptBytes_ != 0) {
        trim();
        fresh = arena_.allocatePopulated(size.bytes, kAlignment);
    }
    if (!fresh.ok()) return fresh.status();
    return Block{static_cast<std::byte*>(*fresh), size.bytes};
}

void ScratchPool::give(Block block) {
    if (block.data == nullptr) return;
    if (block.bytes > keptLimitBytes_ - keptBytes_) {
        arena_.free(block.data);
        return;
    }
    kept_[classOf(block.bytes).index].push_back(block.data);
    keptBytes_ += block.bytes;
}

void ScratchPool::trim() {
    for (std::vector<std::byte*>& kept : kept_) {
        for (std::byte* data : kept) arena_.free(data);
        kept.clear();
    }
    keptBytes_ = 0;
}

}  // namespace isthmus
