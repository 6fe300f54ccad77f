// A device for tests, as torch's PrivateUse1: its memory is host memory, its streams are threads
// that are late on purpose. Its functions for tests are operators.

#include <ATen/ATen.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>
#include <torch/version.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "tests/torch/device/streams.hpp"

namespace isthmus::test {
namespace {

thread_local c10::DeviceIndex currentDevice = 0;
thread_local std::array<std::int64_t, kDevices> currentStreams{};
std::atomic<std::int64_t> nextOfPool{0};
std::atomic<bool> failsNextWait{false};

c10::DeviceIndex indexOf(c10::Device device) {
    return device.has_index() ? device.index() : currentDevice;
}

Stream& threadOf(const c10::Stream& stream) {
    return Stream::of(indexOf(stream.device()), stream.id());
}

class Guard final : public c10::impl::DeviceGuardImplInterface {
public:
    c10::DeviceType type() const override { return c10::kPrivateUse1; }
    c10::Device exchangeDevice(c10::Device device) const override {
        const c10::Device old = getDevice();
        setDevice(device);
        return old;
    }
    c10::Device getDevice() const override { return {c10::kPrivateUse1, currentDevice}; }
    void setDevice(c10::Device device) const override {
        TORCH_CHECK(device.index() < kDevices, "there is no ", device);
        currentDevice = device.index();
    }
    void uncheckedSetDevice(c10::Device device) const noexcept override {
        currentDevice = device.index();
    }
    c10::DeviceIndex deviceCount() const noexcept override { return kDevices; }

    c10::Stream getStream(c10::Device device) const override {
        return streamOf(device, currentStreams.at(static_cast<std::size_t>(indexOf(device))));
    }
    c10::Stream getDefaultStream(c10::Device device) const override { return streamOf(device, 0); }
    c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override {
        return streamOf(device, 1 + nextOfPool.fetch_add(1) % (kStreamsPerDevice - 1));
    }
    c10::Stream getNewStream(c10::Device device, int) const override {
        return getStreamFromGlobalPool(device, false);
    }
    c10::Stream exchangeStream(c10::Stream stream) const override {
        const c10::Stream old = getStream(stream.device());
        currentStreams.at(static_cast<std::size_t>(indexOf(stream.device()))) = stream.id();
        return old;
    }
    bool queryStream(const c10::Stream& stream) const override { return threadOf(stream).isIdle(); }
    void synchronizeStream(const c10::Stream& stream) const override { threadOf(stream).drain(); }
    void synchronizeDevice(c10::DeviceIndex device) const override {
        for (int number = 0; number < kStreamsPerDevice; ++number)
            Stream::of(device, number).drain();
    }
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 15
    bool isStreamCapturing(const c10::Stream& stream) const override {
        return threadOf(stream).isCapturing.load();
    }
#endif

    void record(void** event, const c10::Stream& stream, c10::DeviceIndex,
                c10::EventFlag) const override {
        if (*event == nullptr) *event = new std::shared_ptr<Mark>(std::make_shared<Mark>());
        threadOf(stream).record(markOf(*event));
    }
    void block(void* event, const c10::Stream& stream) const override {
        if (event != nullptr) threadOf(stream).block(markOf(event));
    }
    bool queryEvent(void* event) const override {
        return event == nullptr || markOf(event)->isReached(markOf(event)->asked());
    }
    void synchronizeEvent(void* event) const override {
        TORCH_CHECK(!failsNextWait.exchange(false), "the device is lost");
        if (event != nullptr) markOf(event)->waitFor(markOf(event)->asked());
    }
    void destroyEvent(void* event, c10::DeviceIndex) const noexcept override {
        delete static_cast<std::shared_ptr<Mark>*>(event);
    }
    void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const override {
        DeviceMemory::instance().recordOn(data.get(), stream.id());
    }

private:
    static c10::Stream streamOf(c10::Device device, std::int64_t number) {
        return c10::Stream(c10::Stream::UNSAFE, {c10::kPrivateUse1, indexOf(device)}, number);
    }
    static const std::shared_ptr<Mark>& markOf(void* event) {
        return *static_cast<std::shared_ptr<Mark>*>(event);
    }
};

class DeviceAllocator final : public c10::Allocator {
public:
    c10::DataPtr allocate(std::size_t bytes) override {
        const c10::Device device(c10::kPrivateUse1, currentDevice);
        void* address = nullptr;
        if (bytes > 0) {
            const std::int64_t stream = Guard().getStream(device).id();
            address = DeviceMemory::instance().allocate(bytes, currentDevice, stream);
        }
        return {address, address, &free, device};
    }
    c10::DeleterFnPtr raw_deleter() const override { return &free; }
    void copy_data(void* to, const void* from, std::size_t bytes) const override {
        std::memcpy(to, from, bytes);
    }

private:
    static void free(void* address) {
        if (address != nullptr) DeviceMemory::instance().free(address);
    }
};

class PinnedAllocator final : public c10::Allocator {
public:
    c10::DataPtr allocate(std::size_t bytes) override {
        void* const address = bytes > 0 ? PinnedMemory::instance().allocate(bytes) : nullptr;
        return {address, address, &free, c10::Device(c10::kCPU)};
    }
    c10::DeleterFnPtr raw_deleter() const override { return &free; }
    void copy_data(void* to, const void* from, std::size_t bytes) const override {
        std::memcpy(to, from, bytes);
    }

private:
    static void free(void* address) {
        if (address != nullptr) PinnedMemory::instance().free(address);
    }
};

class Hooks final : public at::PrivateUse1HooksInterface {
public:
    bool isBuilt() const override { return true; }
    bool isAvailable() const override { return true; }
    bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
    c10::DeviceIndex deviceCount() const override { return kDevices; }
    c10::DeviceIndex getCurrentDevice() const override { return currentDevice; }
    void setCurrentDevice(c10::DeviceIndex device) const override { currentDevice = device; }
    c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
        return std::exchange(currentDevice, device);
    }
    c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
        return exchangeDevice(device);
    }
    bool isPinnedPtr(const void* data) const override {
        return PinnedMemory::instance().owns(data);
    }
    c10::Allocator* getPinnedMemoryAllocator() const override {
        static auto* const allocator = new PinnedAllocator();
        return allocator;
    }
    const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override {
        return at::detail::getDefaultCPUGenerator();
    }
};

Stream& currentThread(std::int64_t device) {
    return threadOf(Guard().getStream({c10::kPrivateUse1, static_cast<c10::DeviceIndex>(device)}));
}

}  // namespace

void registerDevice() {
    static const bool isDone = [] {
        c10::register_privateuse1_backend("fake");
        c10::impl::registerDeviceGuard(c10::kPrivateUse1, new Guard());
        c10::SetAllocator(c10::kPrivateUse1, new DeviceAllocator());
        at::RegisterPrivateUse1HooksInterface(new Hooks());
        return true;
    }();
    static_cast<void>(isDone);
}

}  // namespace isthmus::test

TORCH_LIBRARY(fake_device, library) {
    using isthmus::test::currentThread;
    isthmus::test::registerDevice();
    // A kernel that takes its time on the current stream.
    library.def("sleep(int device, int milliseconds) -> ()",
                [](std::int64_t device, std::int64_t milliseconds) {
                    currentThread(device).push([milliseconds] {
                        std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
                    });
                });
    library.def("delay(int microseconds) -> ()", [](std::int64_t microseconds) {
        isthmus::test::Stream::setDelay(static_cast<int>(microseconds));
    });
    library.def("capture(int device, bool on) -> ()", [](std::int64_t device, bool isOn) {
        currentThread(device).isCapturing.store(isOn);
    });
    library.def("is_idle(int device) -> bool",
                [](std::int64_t device) { return currentThread(device).isIdle(); });
    library.def("current_device() -> int", [] {
        return static_cast<std::int64_t>(isthmus::test::Guard().getDevice().index());
    });
    library.def("set_device(int device) -> ()", [](std::int64_t device) {
        isthmus::test::Guard().setDevice(
            {c10::kPrivateUse1, static_cast<c10::DeviceIndex>(device)});
    });
    library.def("device_count() -> int", [] { return std::int64_t{isthmus::test::kDevices}; });
    library.def("current_stream(int device) -> int", [](std::int64_t device) {
        return isthmus::test::Guard()
            .getStream({c10::kPrivateUse1, static_cast<c10::DeviceIndex>(device)})
            .id();
    });
    library.def(
        "set_stream(int device, int stream) -> ()", [](std::int64_t device, std::int64_t stream) {
            isthmus::test::Guard().exchangeStream(
                c10::Stream(c10::Stream::UNSAFE,
                            {c10::kPrivateUse1, static_cast<c10::DeviceIndex>(device)}, stream));
        });
    library.def("fail_next_wait() -> ()", [] { isthmus::test::failsNextWait.store(true); });
    library.def("pinned_allocations() -> int",
                [] { return std::int64_t{isthmus::test::PinnedMemory::instance().allocations()}; });
}
