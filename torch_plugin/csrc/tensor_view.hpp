#pragma once

#include <ATen/ATen.h>
#include <isthmus/isthmus.h>

#include <cstddef>
#include <vector>

#include "torch_plugin/csrc/call.hpp"
#include "torch_plugin/csrc/torch_compat.hpp"

namespace isthmus::glue {

/// A run of library elements inside one dense tensor.
struct Elements {
    isthmusDataType_t type = isthmusUint8;
    std::size_t perTensorElement = 1;  ///< library elements that one tensor element is

    std::size_t of(std::int64_t tensorElements) const {
        return static_cast<std::size_t>(tensorElements) * perTensorElement;
    }
};

/// How a tensor type is moved: as itself where the library knows it, else as bytes (complex, fp8).
Elements movedAs(at::ScalarType type);

/// A reduction that the library does: type and operation, with the factor of PREMUL_SUM apart.
struct Reduction {
    Elements elements;
    isthmusRedOp_t op = isthmusSum;
    bool scalesFirst = false;
    at::Scalar factor;
};

/// Says how to reduce `type` by `op`. Complex sums and averages go as pairs of reals; bool sums are
/// "or". Throws what torch expects: ValueError for an operation that the type has not.
Reduction reductionOf(at::ScalarType type, const c10d::ReduceOp& op, const char* operation);

/// The input of a reduction: `dense`, or scaled where the operation says so: apart from it, or in
/// its place where `dense` is the call's own memory.
at::Tensor operandOf(const at::Tensor& dense, const Reduction& how, Call& call);

/// Throws TypeError unless both have one type.
void checkSameType(const at::Tensor& one, const at::Tensor& other, const char* operation);

/// A caller's tensor together with the dense memory that the library works on: the tensor's own
/// memory where it is contiguous, else a copy; for a device, pinned host memory. One policy for
/// every operation.
class DenseView {
public:
    enum class Use { kRead, kWrite, kReadWrite };

    DenseView(const at::Tensor& tensor, Use use, Call& call);

    const at::Tensor& dense() const { return dense_; }
    bool isCopy() const { return isCopy_; }
    void* data() const;

    /// Brings a written copy into the caller's tensor; its gaps stay as they are.
    void writeBack() const;

private:
    at::Tensor tensor_;
    at::Tensor dense_;
    bool isCopy_ = false;
};

/// Tensors one after another in dense memory, as gather-like lists need them.
class PackedList {
public:
    /// Uses the tensors' own memory where they already lie one after another.
    PackedList(const std::vector<at::Tensor>& tensors, DenseView::Use use, Call& call);

    void* data() const;
    const at::Tensor& dense() const { return dense_; }  ///< all of them, one dimension
    bool isCopy() const { return isCopy_; }
    /// Library elements of each tensor.
    std::vector<std::size_t> counts(const Elements& elements) const;
    bool areEqual() const;
    void writeBack() const;

private:
    /// The part of dense_ for each tensor, in the tensor's shape.
    std::vector<at::Tensor> parts() const;
    void load(Call& call) const;

    std::vector<at::Tensor> tensors_;
    at::Tensor dense_;
    at::Tensor together_;  ///< all tensors as one, of a device on which they lie so
    bool isCopy_ = false;
};

/// An in-place distance that no two tensors have: asks apartFrom() for no overlap at all.
inline constexpr std::int64_t kNeverInPlace = INT64_MAX;

/// `input`, or a copy of it when it shares memory with `output` in a way other than starting
/// `bytesIn` after the start of `output` (the in-place form of the operation).
at::Tensor apartFrom(const at::Tensor& input, const at::Tensor& output, std::int64_t bytesIn);

/// Copies without telling autograd: `to` may be a parameter or an inference tensor.
void plainCopy(const at::Tensor& to, const at::Tensor& from);

/// The address of a dense tensor; some valid address for an empty one.
void* addressOf(const at::Tensor& tensor);

}  // namespace isthmus::glue
