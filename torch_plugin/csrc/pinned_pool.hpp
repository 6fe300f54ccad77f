#pragma once

#include <ATen/ATen.h>
#include <c10/core/Event.h>

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace isthmus::glue {

/// Pinned host memory for tensors on their way between a device and the network: allocated once by
/// torch's own allocator of the device and used again. Any thread.
class PinnedPool {
public:
    using Block = c10::Storage;

    /// The pool of a kind of device; never destroyed, as the driver may be gone by then.
    static PinnedPool& of(c10::DeviceType type);

    /// Memory of at least `bytes`. Never waits: calls in flight may need each other, so there is no
    /// limit but the machine's on what they hold together.
    Block take(std::size_t bytes);
    /// Takes blocks back; they are used again once `lastUse`, unless null, has passed.
    void give(std::vector<Block> blocks, std::shared_ptr<const c10::Event> lastUse);

private:
    struct Returned {
        std::vector<Block> blocks;
        std::shared_ptr<const c10::Event> lastUse;
    };

    explicit PinnedPool(c10::DeviceType type) : type_(type) {}
    void collect();
    void keep(Block block);

    const c10::DeviceType type_;
    std::mutex mutex_;
    std::map<std::size_t, std::vector<Block>> idle_;  ///< by their bytes
    std::size_t idleBytes_ = 0;
    std::deque<Returned> returned_;
};

}  // namespace isthmus::glue
