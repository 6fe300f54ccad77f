#include "tests/torch/device/streams.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace isthmus::test {
namespace {

constexpr unsigned char kSpoiled = 0xA5;
std::atomic<int> mostDelay{0};

void delay(std::minstd_rand& random) {
    const int most = mostDelay.load();
    if (most == 0) return;
    std::uniform_int_distribution<int> some(0, most);
    std::this_thread::sleep_for(std::chrono::microseconds(some(random)));
}

}  // namespace

std::uint64_t Mark::ask() {
    const std::lock_guard lock(mutex_);
    return ++asked_;
}

std::uint64_t Mark::asked() const {
    const std::lock_guard lock(mutex_);
    return asked_;
}

void Mark::reach(std::uint64_t record) {
    const std::lock_guard lock(mutex_);
    reached_ = std::max(reached_, record);
    changed_.notify_all();
}

bool Mark::isReached(std::uint64_t record) const {
    const std::lock_guard lock(mutex_);
    return reached_ >= record;
}

void Mark::waitFor(std::uint64_t record) const {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return reached_ >= record; });
}

Stream& Stream::of(int device, std::int64_t number) {
    static std::mutex mutex;
    static auto* const all = new std::array<std::array<Stream*, kStreamsPerDevice>, kDevices>{};
    const std::lock_guard lock(mutex);
    Stream*& stream =
        all->at(static_cast<std::size_t>(device)).at(static_cast<std::size_t>(number));
    if (stream == nullptr) stream = new Stream();
    return *stream;
}

void Stream::setDelay(int microseconds) {
    mostDelay.store(microseconds);
}

Stream::Stream() {
    std::thread([this] { run(); }).detach();
}

void Stream::push(std::function<void()> task) {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    wake_.notify_one();
}

void Stream::record(const std::shared_ptr<Mark>& mark) {
    push([mark, record = mark->ask()] { mark->reach(record); });
}

void Stream::block(const std::shared_ptr<Mark>& mark) {
    push([mark, record = mark->asked()] { mark->waitFor(record); });
}

bool Stream::isIdle() const {
    const std::lock_guard lock(mutex_);
    return tasks_.empty() && !isBusy_;
}

void Stream::drain() const {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [this] { return tasks_.empty() && !isBusy_; });
}

void Stream::run() {
    std::minstd_rand random(static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(this)));
    std::unique_lock lock(mutex_);
    while (true) {
        wake_.wait(lock, [this] { return !tasks_.empty(); });
        auto task = std::move(tasks_.front());
        tasks_.pop_front();
        isBusy_ = true;
        lock.unlock();
        delay(random);
        task();
        task = nullptr;
        lock.lock();
        isBusy_ = false;
        if (tasks_.empty()) idle_.notify_all();
    }
}

struct DeviceMemory::Block {
    unsigned char* address;
    std::size_t bytes;
    int device;
    std::int64_t stream;
    std::vector<std::int64_t> recordedOn;
};

DeviceMemory& DeviceMemory::instance() {
    static auto* const memory = new DeviceMemory();
    return *memory;
}

void* DeviceMemory::allocate(std::size_t bytes, int device, std::int64_t stream) {
    const std::lock_guard lock(mutex_);
    auto fits = [&](const auto& block) {
        return block->bytes == bytes && block->device == device && block->stream == stream;
    };
    const auto found = std::find_if(idle_.begin(), idle_.end(), fits);
    std::shared_ptr<Block> block;
    if (found != idle_.end()) {
        block = *found;
        idle_.erase(found);
    } else {
        auto* const address = static_cast<unsigned char*>(std::malloc(bytes));
        std::memset(address, kSpoiled, bytes);
        block = std::make_shared<Block>(Block{address, bytes, device, stream, {}});
    }
    used_.push_back(block);
    return block->address;
}

void DeviceMemory::free(void* address) {
    std::shared_ptr<Block> block;
    {
        const std::lock_guard lock(mutex_);
        const auto found = std::find_if(used_.begin(), used_.end(),
                                        [&](const auto& each) { return each->address == address; });
        block = *found;
        used_.erase(found);
    }
    Stream& own = Stream::of(block->device, block->stream);
    for (const std::int64_t number : std::exchange(block->recordedOn, {})) {
        const auto mark = std::make_shared<Mark>();
        Stream::of(block->device, number).record(mark);
        own.block(mark);
    }
    own.push([this, block] { giveBack(block); });
}

void DeviceMemory::giveBack(const std::shared_ptr<Block>& block) {
    std::memset(block->address, kSpoiled, block->bytes);
    const std::lock_guard lock(mutex_);
    idle_.push_back(block);
}

void DeviceMemory::recordOn(void* address, std::int64_t stream) {
    const std::lock_guard lock(mutex_);
    for (const auto& block : used_) {
        if (block->address == address) block->recordedOn.push_back(stream);
    }
}

bool DeviceMemory::owns(const void* address) const {
    const std::lock_guard lock(mutex_);
    return std::any_of(used_.begin(), used_.end(), [&](const auto& block) {
        return block->address <= address && address < block->address + block->bytes;
    });
}

PinnedMemory& PinnedMemory::instance() {
    static auto* const memory = new PinnedMemory();
    return *memory;
}

void* PinnedMemory::allocate(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    ++allocations_;
    for (Block& block : blocks_) {
        if (block.isUsed || block.bytes != bytes) continue;
        block.isUsed = true;
        return block.address;
    }
    auto* const address = static_cast<unsigned char*>(std::malloc(bytes));
    std::memset(address, kSpoiled, bytes);
    blocks_.push_back({address, bytes, true});
    return address;
}

void PinnedMemory::free(void* address) {
    const std::lock_guard lock(mutex_);
    for (Block& block : blocks_) {
        if (block.address != address) continue;
        block.isUsed = false;
        std::memset(block.address, kSpoiled, block.bytes);
    }
}

bool PinnedMemory::owns(const void* address) const {
    const std::lock_guard lock(mutex_);
    return std::any_of(blocks_.begin(), blocks_.end(), [&](const Block& block) {
        return block.isUsed && block.address <= address && address < block.address + block.bytes;
    });
}

int PinnedMemory::allocations() const {
    const std::lock_guard lock(mutex_);
    return allocations_;
}

}  // namespace isthmus::test
