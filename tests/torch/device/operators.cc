// What torch needs to make, look at and copy tensors of the device of tests. Copies and fills are
// tasks of the current stream; everything else goes through the host.

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/library.h>

#include <atomic>

#include "tests/torch/device/streams.hpp"

namespace isthmus::test {
namespace {

using OptionalType = std::optional<at::ScalarType>;
using OptionalLayout = std::optional<at::Layout>;
using OptionalDevice = std::optional<at::Device>;

std::atomic<std::int64_t> pageableCopies{0};

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

c10::impl::VirtualGuardImpl guard() {
    return c10::impl::VirtualGuardImpl(c10::kPrivateUse1);
}

Stream& currentStreamOf(c10::Device device) {
    return Stream::of(device.index(), guard().getStream(device).id());
}

at::Tensor empty(at::IntArrayRef sizes, OptionalType type, OptionalLayout, OptionalDevice device,
                 std::optional<bool>, std::optional<at::MemoryFormat> format) {
    const c10::OptionalDeviceGuard onDevice(device);
    return at::detail::empty_generic(sizes, c10::GetAllocator(c10::kPrivateUse1), kKeys,
                                     type.value_or(at::kFloat), format);
}

at::Tensor emptyStrided(at::IntArrayRef sizes, at::IntArrayRef strides, OptionalType type,
                        OptionalLayout, OptionalDevice device, std::optional<bool>) {
    const c10::OptionalDeviceGuard onDevice(device);
    return at::detail::empty_strided_generic(sizes, strides, c10::GetAllocator(c10::kPrivateUse1),
                                             kKeys, type.value_or(at::kFloat));
}

/// The memory of `tensor` as the host sees it.
at::Tensor hostView(const at::Tensor& tensor) {
    const auto options = at::TensorOptions().dtype(tensor.scalar_type());
    at::Tensor view = at::from_blob(
        tensor.data_ptr(), tensor.sizes(), tensor.strides(), [](void*) {}, options);
    if (tensor.is_conj()) view = view.conj();
    return tensor.is_neg() ? at::_neg_view(view) : view;
}

at::Tensor copyFrom(const at::Tensor& from, const at::Tensor& to, bool isAsync) {
    const c10::Device device = from.device().is_cpu() ? to.device() : from.device();
    const at::Tensor& host = from.device().is_cpu() ? from : to;
    if (isAsync && host.device().is_cpu() && !PinnedMemory::instance().owns(host.data_ptr())) {
        pageableCopies.fetch_add(1);
        isAsync = false;
    }
    // As a real device: neither tensor is kept alive.
    currentStreamOf(device).push([source = hostView(from), target = hostView(to)] {
        const c10::InferenceMode noGradient;
        target.copy_(source);
    });
    if (!isAsync) currentStreamOf(device).drain();
    return to;
}

at::Tensor copyFromAndResize(const at::Tensor& from, const at::Tensor& to) {
    to.resize_(from.sizes());
    return copyFrom(from, to, false);
}

at::Scalar localScalar(const at::Tensor& tensor) {
    return tensor.cpu().item();
}

at::Tensor& fill(at::Tensor& tensor, const at::Scalar& value) {
    currentStreamOf(tensor.device()).push([view = hostView(tensor), value] {
        const c10::InferenceMode noGradient;
        view.fill_(value);
    });
    return tensor;
}

const at::Tensor& resize(const at::Tensor& tensor, at::IntArrayRef sizes,
                         std::optional<at::MemoryFormat> format) {
    const std::size_t bytes = at::detail::computeStorageNbytesContiguous(
        sizes, tensor.itemsize(), static_cast<std::size_t>(tensor.storage_offset()));
    if (bytes > tensor.storage().nbytes()) {
        const c10::DeviceGuard onDevice(tensor.device());
        const c10::Storage& storage = tensor.storage();
        storage.set_data_ptr_noswap(c10::GetAllocator(c10::kPrivateUse1)->allocate(bytes));
        storage.set_nbytes(bytes);
    }
    tensor.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
    static_cast<void>(format);
    return tensor;
}

at::Tensor& setStorage(at::Tensor& tensor, at::Storage storage, std::int64_t offset,
                       at::IntArrayRef sizes, at::IntArrayRef strides) {
    return at::native::set_storage_cpu_(tensor, std::move(storage), offset, sizes, strides);
}

void throughHost(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
    at::native::cpu_fallback(operation, stack);
}

}  // namespace
}  // namespace isthmus::test

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
    using namespace isthmus::test;
    library.impl("empty.memory_format", &empty);
    library.impl("empty_strided", &emptyStrided);
    library.impl("as_strided", &at::native::as_strided_tensorimpl);
    library.impl("view", &at::native::view);
    library.impl("view_as_real", &at::native::view_as_real);
    library.impl("_reshape_alias", &at::native::_reshape_alias);
    library.impl("resize_", &resize);
    library.impl("set_.source_Storage_storage_offset", &setStorage);
    library.impl("_copy_from", &copyFrom);
    library.impl("_copy_from_and_resize", &copyFromAndResize);
    library.impl("_local_scalar_dense", &localScalar);
    library.impl("fill_.Scalar", &fill);
}

// copyFrom() sees to these itself; torch would resolve them by copying once more.
TORCH_LIBRARY_IMPL(aten, Conjugate, library) {
    library.impl("_copy_from", torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, Negative, library) {
    library.impl("_copy_from", torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
    library.fallback(torch::CppFunction::makeFromBoxedFunction<&isthmus::test::throughHost>());
}

TORCH_LIBRARY_FRAGMENT(fake_device, library) {
    library.def("pageable_copies() -> int", [] { return isthmus::test::pageableCopies.load(); });
}
