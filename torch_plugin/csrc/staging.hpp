#pragma once

#include <ATen/ATen.h>
#include <c10/core/Event.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "torch_plugin/csrc/pinned_pool.hpp"

namespace isthmus::glue {

/// A group's own streams of one device: one for what leaves it, one for what comes back.
struct SideStreams {
    c10::Stream out;
    c10::Stream in;
};

/// The side streams of a group, taken from torch's pool when a device is first used. Any thread.
class SideStreamsByDevice {
public:
    SideStreams of(c10::Device device);
    /// The device that was asked for last.
    std::optional<c10::Device> lastUsed() const;

private:
    mutable std::mutex mutex_;
    std::optional<c10::Device> lastUsed_;
    std::map<std::pair<c10::DeviceType, c10::DeviceIndex>, SideStreams> streams_;
};

/// The way of one call's tensors from a device through pinned host memory and back. Knows torch's
/// streams and events of any device and nothing of CUDA.
///
/// Order of use: `hostMemory`, `willLoad`, `follow` and the like while the call is made, with no
/// work given to the device yet, so that a refusal leaves no trace; `enqueueLoads` in the caller's
/// thread; `waitUntilLoaded` on the thread that begins the call; `store` on the one that ends it;
/// then the caller's streams may wait.
class Staging {
public:
    /// Throws while the caller's current stream on `device` records a graph.
    Staging(c10::Device device, const char* operation);
    ~Staging();
    Staging(const Staging&) = delete;
    Staging& operator=(const Staging&) = delete;

    c10::Device device() const { return device_; }

    /// Dense pinned memory of these sizes, kept until release().
    at::Tensor hostMemory(at::IntArrayRef sizes, at::ScalarType type);
    /// `host` is to hold what `source` has when the caller's stream gets to this call.
    void willLoad(at::Tensor host, at::Tensor source);
    /// To be done with the loaded memory before the call begins.
    void afterLoading(std::function<void()> change);
    /// The call begins only after what the caller's stream was given before, tensors or not.
    void waitForCaller() { waitsForCaller_ = true; }

    /// The tensors of the device that are to be loaded.
    std::vector<at::Tensor> sources() const;
    /// The tensors are taken only once these have ended; they do within `limit`, or this call
    /// fails.
    void follow(std::vector<std::shared_ptr<Staging>> before, std::chrono::milliseconds limit);

    /// Whether begin() has anything to wait for: other calls, or these and the device.
    bool isToFollow() const { return !before_.empty(); }
    bool isToBeLoaded() const { return waitsForCaller_ || !loads_.empty() || isToFollow(); }

    void enqueueLoads(const SideStreams& streams);
    /// Blocks until host memory has what it is to have.
    void waitUntilLoaded();
    /// Enqueues what `writeBack` copies to `outputs`, and the end of the call after it.
    void store(const std::function<void()>& writeBack, const std::vector<at::Tensor>& outputs);
    /// Gives the host memory back, as nobody but the device uses it any more. The call has ended.
    void release();
    bool hasEnded() const;

    /// Throws while the caller's current stream records a graph: it cannot wait for this there.
    void refuseCapture(const char* operation) const;
    /// The caller's current stream goes on once the results are on the device. For those who saw
    /// the call end: so with all below.
    void makeCurrentStreamWait() const;
    void waitUntilStored() const;
    bool isStored() const;
    /// Where the results come: futures are marked with it as the current stream.
    c10::Stream resultStream() const { return streams_->in; }

private:
    struct Load {
        at::Tensor host;
        at::Tensor source;
    };

    void copyLoads();
    void waitForThoseBefore();

    const c10::Device device_;
    std::optional<SideStreams> streams_;
    std::vector<PinnedPool::Block> blocks_;
    std::vector<Load> loads_;
    std::vector<std::function<void()>> changes_;
    bool waitsForCaller_ = false;
    std::vector<std::shared_ptr<Staging>> before_;
    std::chrono::milliseconds limit_{0};
    std::shared_ptr<c10::Event> reached_;  ///< the caller's stream got to the call
    std::shared_ptr<c10::Event> loaded_;
    std::shared_ptr<c10::Event> taken_;  ///< so has what calls before this one load
    std::shared_ptr<c10::Event> stored_;

    mutable std::mutex endMutex_;
    std::condition_variable end_;
    bool hasEnded_ = false;
};

}  // namespace isthmus::glue
