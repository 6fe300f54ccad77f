#include "torch_plugin/csrc/staging.hpp"

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <utility>

#include "torch_plugin/csrc/capture.hpp"

namespace isthmus::glue {
namespace {

using Guard = c10::impl::VirtualGuardImpl;

c10::Device withIndex(c10::Device device) {
    return device.has_index() ? device : Guard(device.type()).getDevice();
}

/// What the caching allocator of the device has to know: `tensor` is in use on `stream`.
void keepFor(const at::Tensor& tensor, const c10::Stream& stream) {
    if (tensor.device().is_cpu() || !tensor.has_storage()) return;
    Guard(stream.device_type()).recordDataPtrOnStream(tensor.storage().data_ptr(), stream);
}

}  // namespace

SideStreams SideStreamsByDevice::of(c10::Device device) {
    const std::lock_guard lock(mutex_);
    lastUsed_ = device;
    const std::pair key(device.type(), device.index());
    if (const auto found = streams_.find(key); found != streams_.end()) return found->second;
    const Guard guard(device.type());
    constexpr bool kHighPriority = true;
    const SideStreams streams{guard.getStreamFromGlobalPool(device, kHighPriority),
                              guard.getStreamFromGlobalPool(device, kHighPriority)};
    return streams_.emplace(key, streams).first->second;
}

std::optional<c10::Device> SideStreamsByDevice::lastUsed() const {
    const std::lock_guard lock(mutex_);
    return lastUsed_;
}

Staging::Staging(c10::Device device, const char* operation) : device_(withIndex(device)) {
    refuseCapture(operation);
}

Staging::~Staging() {
    release();
}

void Staging::refuseCapture(const char* operation) const {
    TORCH_CHECK(!isCapturing(Guard(device_.type()).getStream(device_)), "isthmus: ", operation,
                " cannot be captured in a graph: what is on ", device_,
                " passes through host memory, which a replay would not do again; call it outside "
                "the graph (with torch.compile, without mode=\"reduce-overhead\") or use a group "
                "of init_process_group(\"cpu:isthmus,cuda:nccl\")");
}

at::Tensor Staging::hostMemory(at::IntArrayRef sizes, at::ScalarType type) {
    const std::size_t bytes =
        static_cast<std::size_t>(c10::multiply_integers(sizes)) * c10::elementSize(type);
    if (bytes == 0) return at::empty(sizes, at::TensorOptions().dtype(type));
    blocks_.push_back(PinnedPool::of(device_.type()).take(bytes));
    at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
        c10::Storage(blocks_.back()), c10::DispatchKeySet(c10::DispatchKey::CPU),
        c10::scalarTypeToTypeMeta(type));
    tensor.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
    return tensor;
}

void Staging::willLoad(at::Tensor host, at::Tensor source) {
    if (source.numel() > 0) loads_.push_back({std::move(host), std::move(source)});
}

void Staging::afterLoading(std::function<void()> change) {
    changes_.push_back(std::move(change));
}

std::vector<at::Tensor> Staging::sources() const {
    std::vector<at::Tensor> sources;
    for (const Load& load : loads_) sources.push_back(load.source);
    return sources;
}

void Staging::follow(std::vector<std::shared_ptr<Staging>> before,
                     std::chrono::milliseconds limit) {
    before_ = std::move(before);
    limit_ = limit;
}

void Staging::enqueueLoads(const SideStreams& streams) {
    streams_ = streams;
    reached_ = std::make_shared<c10::Event>(device_.type());
    reached_->record(Guard(device_.type()).getStream(device_));
    if (!isToFollow()) copyLoads();
}

void Staging::copyLoads() {
    taken_ = std::make_shared<c10::Event>(device_.type());
    if (isToBeLoaded()) {
        const at::AutoDispatchBelowADInplaceOrView noGradient;
        reached_->block(streams_->out);
        const c10::StreamGuard onSideStream(streams_->out);
        for (const Load& load : loads_) {
            keepFor(load.source, streams_->out);
            // A lazy conjugate is resolved on the device: the host would do it before the copy
            // came.
            const at::Tensor plain = load.source.resolve_conj().resolve_neg();
            load.host.copy_(plain, /*non_blocking=*/true);
        }
        loaded_ = taken_;
    }
    taken_->record(streams_->out);
}

void Staging::waitForThoseBefore() {
    const auto until = std::chrono::steady_clock::now() + limit_;
    for (const auto& earlier : before_) {
        std::unique_lock lock(earlier->endMutex_);
        const bool hasEnded =
            earlier->end_.wait_until(lock, until, [&] { return earlier->hasEnded_; });
        TORCH_CHECK(hasEnded, "a call before on the same tensor did not end within ",
                    limit_.count(), " ms");
        if (earlier->stored_) earlier->stored_->block(streams_->out);
    }
    before_.clear();
}

void Staging::waitUntilLoaded() {
    const AsideOfCapture aside(device_.type());
    if (isToFollow()) {
        waitForThoseBefore();
        copyLoads();
    }
    if (!loaded_) return;
    loaded_->synchronize();
    const at::AutoDispatchBelowADInplaceOrView noGradient;
    for (const auto& change : changes_) change();
}

void Staging::store(const std::function<void()>& writeBack,
                    const std::vector<at::Tensor>& outputs) {
    const AsideOfCapture aside(device_.type());
    auto stored = std::make_shared<c10::Event>(device_.type());
    try {
        reached_->block(streams_->in);  // the caller may still have been reading there
        taken_->block(streams_->in);    // and so may calls before this one
        {
            const c10::StreamGuard onSideStream(streams_->in);
            for (const at::Tensor& output : outputs) keepFor(output, streams_->in);
            writeBack();
        }
        stored->record(streams_->in);
    } catch (...) {
        blocks_.clear();  // how far the device got is unknown: not for the next call
        throw;
    }
    stored_ = std::move(stored);
}

void Staging::release() {
    PinnedPool::of(device_.type()).give(std::exchange(blocks_, {}), stored_ ? stored_ : loaded_);
    loads_.clear();
    changes_.clear();
    const std::lock_guard lock(endMutex_);
    hasEnded_ = true;
    end_.notify_all();
}

bool Staging::hasEnded() const {
    const std::lock_guard lock(endMutex_);
    return hasEnded_;
}

void Staging::makeCurrentStreamWait() const {
    if (stored_) stored_->block(Guard(device_.type()).getStream(device_));
}

void Staging::waitUntilStored() const {
    const AsideOfCapture aside(device_.type());
    if (stored_) stored_->synchronize();
}

bool Staging::isStored() const {
    const AsideOfCapture aside(device_.type());
    return !stored_ || stored_->query();
}

}  // namespace isthmus::glue
