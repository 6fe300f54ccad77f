#include "torch_plugin/csrc/cpu_allocator.hpp"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>
#include <isthmus/isthmus.h>

#include <atomic>
#include <bit>
#include <cstring>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "torch_plugin/csrc/executor.hpp"

namespace isthmus::glue {
namespace {

// Freed blocks that wait for the next tensor of their size: fresh shared pages cost 0.6 ms per MB.
constexpr std::size_t kKeptBytes = std::size_t{1} << 30;

/// Eight sizes per power of two: at most an eighth of a block is waste, and steps of a training
/// loop that differ a little find each other's blocks.
std::size_t roundedUp(std::size_t bytes) {
    const std::size_t step = std::max<std::size_t>(std::bit_floor(bytes) / 8, 64);
    return (bytes + step - 1) / step * step;
}

/// Never destroyed: tensors may outlive everything.
class Blocks {
public:
    /// Null when there is no such memory.
    void* take(std::size_t bytes) {
        const std::size_t size = roundedUp(bytes);
        void* block = takeKept(size);
        // Not under the lock: other threads need not wait while fresh pages are made.
        if (block == nullptr && isthmusMemAlloc(&block, size) != isthmusSuccess) return nullptr;
        const std::lock_guard lock(mutex_);
        live_.emplace(block, size);
        return block;
    }

    /// False: the block is not one of these.
    bool give(void* block) {
        const std::lock_guard lock(mutex_);
        const auto found = live_.find(block);
        if (found == live_.end()) return false;
        const std::size_t size = found->second;
        live_.erase(found);
        if (size > kKeptBytes - keptBytes_) {
            isthmusMemFree(block);
        } else {
            kept_[size].push_back(block);
            keptBytes_ += size;
        }
        return true;
    }

private:
    void* takeKept(std::size_t size) {
        const std::lock_guard lock(mutex_);
        const auto waiting = kept_.find(size);
        if (waiting == kept_.end() || waiting->second.empty()) return nullptr;
        void* const block = waiting->second.back();
        waiting->second.pop_back();
        keptBytes_ -= size;
        return block;
    }

    std::mutex mutex_;
    std::unordered_map<void*, std::size_t> live_;  // guarded by mutex_
    std::map<std::size_t, std::vector<void*>> kept_;
    std::size_t keptBytes_ = 0;
};

class CpuAllocator final : public c10::Allocator {
public:
    explicit CpuAllocator(c10::Allocator& before) : before_(before) {}

    void setLeast(std::size_t bytes) { leastBytes_.store(bytes, std::memory_order_relaxed); }

    c10::DataPtr allocate(std::size_t bytes) override {
        const bool isShared =
            bytes >= leastBytes_.load(std::memory_order_relaxed) && !isForkedChild();
        void* const block = isShared ? blocks().take(bytes) : nullptr;
        if (block != nullptr) return {block, block, &release, c10::Device(c10::kCPU)};
        if (isShared) warnOnce(bytes);
        return before_.allocate(bytes);
    }

    // For who frees by hand what allocate() gave (raw_allocate): either kind.
    c10::DeleterFnPtr raw_deleter() const override {
        return before_.raw_deleter() == nullptr ? nullptr : &releaseEither;
    }

    void copy_data(void* to, const void* from, std::size_t bytes) const override {
        std::memcpy(to, from, bytes);
    }

    static CpuAllocator*& installed() {
        static CpuAllocator* allocator = nullptr;
        return allocator;
    }

private:
    static Blocks& blocks() {
        static auto* const all = new Blocks();
        return *all;
    }

    static void release(void* block) {
        if (!isForkedChild()) blocks().give(block);  // a child's are its parent's to free
    }

    static void releaseEither(void* block) {
        if (isForkedChild()) return;
        if (!blocks().give(block)) installed()->before_.raw_deleter()(block);
    }

    void warnOnce(std::size_t bytes) {
        if (hasWarned_.exchange(true)) return;
        TORCH_WARN(
            "isthmus: no shared memory for a tensor of ", bytes,
            " bytes; it and later ones may lie in ordinary memory: ", isthmusGetLastError(nullptr));
    }

    c10::Allocator& before_;
    std::atomic<std::size_t> leastBytes_{0};
    std::atomic<bool> hasWarned_{false};
};

}  // namespace

void shareCpuTensors(std::int64_t leastBytes) {
    TORCH_CHECK_VALUE(leastBytes > 0, "isthmus: share_cpu_tensors: least_bytes is ", leastBytes,
                      ", must be positive");
    watchForks();
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    auto*& installed = CpuAllocator::installed();
    if (installed == nullptr) {
        installed = new CpuAllocator(*c10::GetCPUAllocator());  // for ever, as c10 wants it
        installed->setLeast(static_cast<std::size_t>(leastBytes));
        // Priority 1: above the default and above what torch may set later without one.
        c10::SetCPUAllocator(installed, 1);
    }
    installed->setLeast(static_cast<std::size_t>(leastBytes));
}

}  // namespace isthmus::glue
