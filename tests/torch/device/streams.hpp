#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

namespace isthmus::test {

constexpr int kDevices = 2;
constexpr int kStreamsPerDevice = 9;  // the default one and a pool of eight

/// What an event counts: records asked for, and those that a stream has come to.
class Mark {
public:
    std::uint64_t ask();
    std::uint64_t asked() const;
    void reach(std::uint64_t record);
    bool isReached(std::uint64_t record) const;
    void waitFor(std::uint64_t record) const;

private:
    mutable std::mutex mutex_;
    mutable std::condition_variable changed_;
    std::uint64_t asked_ = 0;
    std::uint64_t reached_ = 0;
};

/// One stream: a thread that does its tasks in order, each after a delay, so that who does not wait
/// sees old bytes. Never destroyed.
class Stream {
public:
    /// The stream `number` of a device; made at the first use.
    static Stream& of(int device, std::int64_t number);
    /// Every task waits up to this long first.
    static void setDelay(int microseconds);

    void push(std::function<void()> task);
    void record(const std::shared_ptr<Mark>& mark);
    void block(const std::shared_ptr<Mark>& mark);
    bool isIdle() const;
    void drain() const;

    std::atomic<bool> isCapturing{false};

private:
    Stream();
    void run();

    mutable std::mutex mutex_;
    std::condition_variable wake_;
    mutable std::condition_variable idle_;
    std::deque<std::function<void()>> tasks_;
    bool isBusy_ = false;
};

/// Memory of a device, in the order of streams as a caching allocator gives it: a block that is
/// freed is spoiled and used again once the streams that it was recorded on, and the one that it
/// was allocated for, have come so far.
class DeviceMemory {
public:
    static DeviceMemory& instance();

    void* allocate(std::size_t bytes, int device, std::int64_t stream);
    void free(void* address);
    void recordOn(void* address, std::int64_t stream);
    bool owns(const void* address) const;

private:
    struct Block;

    void giveBack(const std::shared_ptr<Block>& block);

    mutable std::mutex mutex_;
    std::deque<std::shared_ptr<Block>> used_;
    std::deque<std::shared_ptr<Block>> idle_;
};

/// Pinned host memory: spoiled when it is freed, and never given back to the system.
class PinnedMemory {
public:
    static PinnedMemory& instance();

    void* allocate(std::size_t bytes);
    void free(void* address);
    bool owns(const void* address) const;
    int allocations() const;

private:
    struct Block {
        unsigned char* address;
        std::size_t bytes;
        bool isUsed;
    };

    mutable std::mutex mutex_;
    std::deque<Block> blocks_;
    int allocations_ = 0;
};

}  // namespace isthmus::test
