#pragma once

#include <ATen/ATen.h>
#include <c10/core/Allocator.h>

#include <memory>

namespace isthmus::glue {

/// Host memory that the ranks of this node map, so that collectives read it without a copy.
std::shared_ptr<c10::Allocator> sharedAllocator();

/// A tensor of `elements` values in such memory.
at::Tensor sharedTensor(std::int64_t elements, const at::TensorOptions& options);

}  // namespace isthmus::glue
