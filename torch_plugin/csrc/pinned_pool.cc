#include "torch_plugin/csrc/pinned_pool.hpp"

#include <ATen/Context.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "torch_plugin/csrc/capture.hpp"

namespace isthmus::glue {
namespace {

/// One page: less cannot be pinned.
constexpr std::size_t kLeastBytes = 4096;
/// What waits for the next call; a few gradient buckets of DDP (25 MiB) or layers of FSDP.
constexpr std::size_t kMostIdleBytes = std::size_t{256} << 20;

constexpr auto kTypes = static_cast<std::size_t>(c10::DeviceType::COMPILE_TIME_MAX_DEVICE_TYPES);

}  // namespace

PinnedPool& PinnedPool::of(c10::DeviceType type) {
    static std::mutex mutex;
    static auto* const pools = new std::array<PinnedPool*, kTypes>{};
    const std::lock_guard lock(mutex);
    PinnedPool*& pool = (*pools)[static_cast<std::size_t>(type)];
    if (pool == nullptr) pool = new PinnedPool(type);
    return *pool;
}

PinnedPool::Block PinnedPool::take(std::size_t bytes) {
    // Powers of two, as torch's own allocators of pinned memory have them.
    const AsideOfCapture aside(type_);
    const std::size_t rounded = std::bit_ceil(std::max(bytes, kLeastBytes));
    {
        const std::lock_guard lock(mutex_);
        collect();
        if (const auto found = idle_.find(rounded); found != idle_.end()) {
            Block block = std::move(found->second.back());
            found->second.pop_back();
            if (found->second.empty()) idle_.erase(found);
            idleBytes_ -= rounded;
            return block;
        }
    }
    c10::Allocator* const allocator = at::globalContext().getPinnedMemoryAllocator(type_);
    return Block(Block::use_byte_size_t(), rounded, allocator->allocate(rounded), allocator, false);
}

void PinnedPool::give(std::vector<Block> blocks, std::shared_ptr<const c10::Event> lastUse) {
    if (blocks.empty()) return;
    const std::lock_guard lock(mutex_);
    returned_.push_back({std::move(blocks), std::move(lastUse)});
}

void PinnedPool::collect() {
    while (!returned_.empty()) {
        Returned& oldest = returned_.front();
        if (oldest.lastUse && !oldest.lastUse->query()) return;
        for (Block& block : oldest.blocks) keep(std::move(block));
        returned_.pop_front();
    }
}

void PinnedPool::keep(Block block) {
    const std::size_t bytes = block.nbytes();
    if (idleBytes_ + bytes > kMostIdleBytes) return;  // back to torch's allocator
    idleBytes_ += bytes;
    idle_[bytes].push_back(std::move(block));
}

}  // namespace isthmus::glue
