#include "torch_plugin/csrc/call.hpp"

#include <c10/core/impl/VirtualGuardImpl.h>

namespace isthmus::glue {
namespace {

/// Something that has streams and events: CUDA, ROCm under its name, XPU, a device of a plugin.
bool isAccelerator(c10::DeviceType type) {
    return type != c10::kCPU && type != c10::kMeta && c10::impl::hasDeviceGuardImpl(type);
}

}  // namespace

void Call::admit(const at::Tensor& tensor) {
    TORCH_CHECK(tensor.defined(), "isthmus: ", operation(), ": undefined tensor");
    TORCH_CHECK(tensor.layout() == at::kStrided, "isthmus: ", operation(),
                " does not support sparse tensors (layout ", tensor.layout(),
                "); call to_dense() first");
    if (!tensor.device().is_cpu()) {
        admitDevice(tensor.device());
        return;
    }
    TORCH_CHECK(mayMixHost || !staging, "isthmus: ", operation(),
                ": all tensors must be on the same device, got ", staging->device(), " and cpu");
    hasHostTensor_ = true;
}

void Call::admit(const std::vector<at::Tensor>& tensors) {
    for (const at::Tensor& tensor : tensors) admit(tensor);
}

void Call::admitDevice(c10::Device device) {
    TORCH_CHECK(isAccelerator(device.type()), "isthmus: ", operation(), ": tensor is on ", device,
                ", a device without streams; move it with .cpu()");
    if (staging) {
        TORCH_CHECK(staging->device() == device, "isthmus: ", operation(),
                    ": all tensors must be on the same device, got ", staging->device(), " and ",
                    device);
        return;
    }
    TORCH_CHECK(mayMixHost || !hasHostTensor_, "isthmus: ", operation(),
                ": all tensors must be on the same device, got cpu and ", device);
    staging = std::make_shared<Staging>(device, operation());
}

}  // namespace isthmus::glue
