#include "torch_plugin/csrc/shared_memory.hpp"

#include <isthmus/isthmus.h>

#include <cstring>

#include "torch_plugin/csrc/errors.hpp"
#include "torch_plugin/csrc/executor.hpp"

namespace isthmus::glue {
namespace {

void freeShared(void* pointer) {
    if (pointer != nullptr && !isForkedChild()) isthmusMemFree(pointer);
}

class SharedAllocator final : public c10::Allocator {
public:
    c10::DataPtr allocate(std::size_t bytes) override {
        void* pointer = nullptr;
        if (bytes > 0) throwUnlessOk(Outcome::of(isthmusMemAlloc(&pointer, bytes)), "allocate");
        return {pointer, pointer, &freeShared, c10::Device(c10::kCPU)};
    }
    c10::DeleterFnPtr raw_deleter() const override { return &freeShared; }
    void copy_data(void* to, const void* from, std::size_t bytes) const override {
        std::memcpy(to, from, bytes);
    }
};

}  // namespace

std::shared_ptr<c10::Allocator> sharedAllocator() {
    static auto* const allocator =
        new std::shared_ptr<c10::Allocator>(std::make_shared<SharedAllocator>());
    return *allocator;  // kept for ever: tensors may outlive every group
}

at::Tensor sharedTensor(std::int64_t elements, const at::TensorOptions& options) {
    TORCH_CHECK(options.device().is_cpu(),
                "isthmus: allocate_tensor: this build has host memory "
                "only, got device ",
                options.device());
    const auto bytes = static_cast<std::size_t>(elements) *
                       c10::elementSize(c10::typeMetaToScalarType(options.dtype()));
    c10::DataPtr memory = sharedAllocator()->allocate(bytes);
    void* const address = memory.get();
    // The tensor's deleter owns the memory; it has to be copyable, hence the shared pointer.
    auto owner = std::make_shared<c10::DataPtr>(std::move(memory));
    return at::from_blob(
        address, {elements}, [owner](void*) mutable { owner.reset(); }, options);
}

}  // namespace isthmus::glue
