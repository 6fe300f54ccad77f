#pragma once

#include <cstddef>
#include <vector>

#include <isthmus/status.hpp>

#include "comm/memory/arena.hpp"

namespace isthmus {

/// Scratch for calls, in the arena: pages are present before a block is handed out the first time,
/// and blocks given back wait here for the next call of about their size. Thread: one (the
/// engine's).
class ScratchPool {
public:
    /// A block belongs to whoever took it, until give.
    struct Block {
        std::byte* data = nullptr;
        std::size_t bytes = 0;  ///< at least what was asked for
    };

    /// `keptLimitBytes`: how much may wait here (ISTHMUS_SCRATCH). `arena` outlives the pool.
    explicit ScratchPool(Arena& arena, std::size_t keptLimitBytes = std::size_t(256) << 20);
    ~ScratchPool();
    ScratchPool(const ScratchPool&) = delete;
    ScratchPool& operator=(const ScratchPool&) = delete;

    /// At least `bytes`, aligned to 128, of unknown content. kResource as Arena::allocate, after
    /// everything that waits here was given up for it.
    Result<Block> take(std::size_t bytes);

    /// `block` must come from take (an empty one is nothing).
    void give(Block block);

    /// Gives everything that waits back to the arena.
    void trim();

    std::size_t keptBytes() const { return keptBytes_; }

private:
    Arena& arena_;
    std::size_t keptLimitBytes_;
    std::size_t keptBytes_ = 0;
    std::vector<std::vector<std::byte*>> kept_;  // by size class
};

}  // namespace isthmus
