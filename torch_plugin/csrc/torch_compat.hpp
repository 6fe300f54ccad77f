#pragma once

/// The one place that looks at torch's version. The sources compile against torch 2.11 to 2.15:
/// they override the names that all of them have (2.14 renamed several collectives and kept the old
/// names as virtual functions that the new ones call), and what differs is decided here.

#include <torch/version.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <type_traits>

#define ISTHMUS_TORCH_AT_LEAST(major, minor) \
    (TORCH_VERSION_MAJOR > (major) ||        \
     (TORCH_VERSION_MAJOR == (major) && TORCH_VERSION_MINOR >= (minor)))

#if !ISTHMUS_TORCH_AT_LEAST(2, 11)
#error "isthmus needs torch 2.11 or newer"
#endif

namespace isthmus::glue {

template <typename Type>
concept CopiesBackendOptions = std::is_copy_constructible_v<typename Type::Options>;
template <typename Type>
concept AllocatesTensors = requires(Type& backend) {
    backend.allocateTensor(1L, at::TensorOptions());
};
template <typename Type>
concept GivesAllocator = requires(Type& backend) {
    backend.getMemAllocator();
};
template <typename Type>
concept ClonesStore = requires(Type& store) {
    store.clone();
};
template <typename Options>
concept SaysWhetherAsync = requires(Options options) {
    { options.asyncOp } -> std::convertible_to<bool>;
};

static_assert(CopiesBackendOptions<c10d::Backend>);
static_assert(AllocatesTensors<c10d::Backend>);
static_assert(GivesAllocator<c10d::Backend>);
static_assert(SaysWhetherAsync<c10d::AllreduceOptions> && SaysWhetherAsync<c10d::BarrierOptions>);

}  // namespace isthmus::glue
