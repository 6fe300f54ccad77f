#include "torch_plugin/csrc/tensor_view.hpp"

#include <ATen/MemoryOverlap.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <algorithm>
#include <cstdint>
#include <optional>

namespace isthmus::glue {
namespace {

std::optional<isthmusDataType_t> libraryType(at::ScalarType type) {
    switch (type) {
    case at::kChar:
        return isthmusInt8;
    case at::kByte:
        return isthmusUint8;
    case at::kShort:
        return isthmusInt16;
    case at::ScalarType::UInt16:
        return isthmusUint16;
    case at::kInt:
        return isthmusInt32;
    case at::ScalarType::UInt32:
        return isthmusUint32;
    case at::kLong:
        return isthmusInt64;
    case at::ScalarType::UInt64:
        return isthmusUint64;
    case at::kHalf:
        return isthmusFloat16;
    case at::kBFloat16:
        return isthmusBfloat16;
    case at::kFloat:
        return isthmusFloat32;
    case at::kDouble:
        return isthmusFloat64;
    case at::kBool:
        return isthmusBool;
    default:
        return std::nullopt;
    }
}

isthmusRedOp_t libraryOp(c10d::ReduceOp::RedOpType op) {
    switch (op) {
    case c10d::ReduceOp::AVG:
        return isthmusAvg;
    case c10d::ReduceOp::PRODUCT:
        return isthmusProd;
    case c10d::ReduceOp::MIN:
        return isthmusMin;
    case c10d::ReduceOp::MAX:
        return isthmusMax;
    case c10d::ReduceOp::BAND:
        return isthmusBand;
    case c10d::ReduceOp::BOR:
        return isthmusBor;
    case c10d::ReduceOp::BXOR:
        return isthmusBxor;
    default:
        return isthmusSum;
    }
}

bool isBitwise(c10d::ReduceOp::RedOpType op) {
    return op == c10d::ReduceOp::BAND || op == c10d::ReduceOp::BOR || op == c10d::ReduceOp::BXOR;
}

const char* nameOf(c10d::ReduceOp::RedOpType op) {
    static constexpr const char* kNames[] = {"SUM",  "AVG", "PRODUCT", "MIN",       "MAX",
                                             "BAND", "BOR", "BXOR",    "PREMUL_SUM"};
    return op < std::size(kNames) ? kNames[op] : "UNUSED";
}

void checkOperation(at::ScalarType type, c10d::ReduceOp::RedOpType op, const char* operation) {
    const bool isFloating = at::isFloatingType(type) || at::isComplexType(type);
    const bool adds =
        op == c10d::ReduceOp::SUM || op == c10d::ReduceOp::AVG || op == c10d::ReduceOp::PREMUL_SUM;
    TORCH_CHECK(op <= c10d::ReduceOp::PREMUL_SUM, "isthmus: ", operation, ": unknown reduction ",
                static_cast<int>(op));
    TORCH_CHECK_VALUE(!isBitwise(op) || !isFloating, "isthmus: ", operation, ": ", nameOf(op),
                      " is for integers and bool, got ", c10::toString(type));
    TORCH_CHECK_VALUE(adds || !at::isComplexType(type), "isthmus: ", operation, ": ", nameOf(op),
                      " is not defined for ", c10::toString(type), "; SUM and AVG are");
    TORCH_CHECK(isFloating || (op != c10d::ReduceOp::AVG && op != c10d::ReduceOp::PREMUL_SUM),
                "isthmus: ", operation, ": ", nameOf(op), " is for floating types only, got ",
                c10::toString(type), "; use SUM and divide as you want it rounded");
}

at::Scalar factorOf(const c10d::ReduceOp& op) {
    // Torch does not export the class's type information: a dynamic_cast would not link.
    const auto* extra = static_cast<const c10d::NCCLPreMulSumSupplement*>(op.supplement_.get());
    TORCH_CHECK(extra != nullptr, "isthmus: PREMUL_SUM without a factor");
    if (extra->tensor_factor.defined()) return extra->tensor_factor.item();
    return extra->double_factor;
}

std::int64_t totalElements(const std::vector<at::Tensor>& tensors) {
    std::int64_t total = 0;
    for (const at::Tensor& tensor : tensors) total += tensor.numel();
    return total;
}

bool isDense(const at::Tensor& tensor) {
    return tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg();
}

std::uintptr_t placeOf(const at::Tensor& tensor) {
    return reinterpret_cast<std::uintptr_t>(tensor.data_ptr());
}

bool lieOneAfterAnother(const std::vector<at::Tensor>& tensors) {
    std::uintptr_t next = placeOf(tensors.front());
    for (const at::Tensor& tensor : tensors) {
        if (!isDense(tensor) || (tensor.numel() > 0 && placeOf(tensor) != next)) return false;
        // Separate storages may touch by chance; memory of one storage is one object.
        if (tensor.storage().data_ptr().get() != tensors.front().storage().data_ptr().get()) {
            return false;
        }
        next += tensor.nbytes();
    }
    return true;
}

void checkWritable(const at::Tensor& tensor, const char* operation) {
    TORCH_CHECK(isDense(tensor) || at::has_internal_overlap(tensor) != at::MemOverlap::Yes,
                "isthmus: ", operation,
                ": cannot write to an expanded tensor (several elements share memory)");
}

void checkSameDevice(const at::Tensor& one, const at::Tensor& other, const char* operation) {
    TORCH_CHECK(one.device() == other.device(), "isthmus: ", operation,
                ": the tensors of a list must be on the same device, got ", one.device(), " and ",
                other.device());
}

}  // namespace

Elements movedAs(at::ScalarType type) {
    if (const auto known = libraryType(type)) return {*known, 1};
    return {isthmusUint8, c10::elementSize(type)};
}

Reduction reductionOf(at::ScalarType type, const c10d::ReduceOp& op, const char* operation) {
    checkOperation(type, op.op_, operation);
    Reduction reduction;
    reduction.op = libraryOp(op.op_);
    if (op.op_ == c10d::ReduceOp::PREMUL_SUM) {
        reduction.scalesFirst = true;
        reduction.factor = factorOf(op);
    }
    if (type == at::kBool && isBitwise(op.op_)) {
        reduction.elements = {isthmusUint8, 1};  // one byte, 0 or 1: bits and truth agree
        return reduction;
    }
    if (at::isComplexType(type)) {
        const auto part = libraryType(c10::toRealValueType(type));
        TORCH_CHECK(part.has_value(), "isthmus: ", operation, ": no reduction of ",
                    c10::toString(type));
        reduction.elements = {*part, 2};
        return reduction;
    }
    const auto known = libraryType(type);
    TORCH_CHECK(known.has_value(), "isthmus: ", operation, ": no reduction of ",
                c10::toString(type), "; it can be moved but not added");
    reduction.elements = {*known, 1};
    return reduction;
}

at::Tensor operandOf(const at::Tensor& dense, const Reduction& how, Call& call) {
    if (!how.scalesFirst) return dense;
    if (call.staging) {
        call.staging->afterLoading([dense, factor = how.factor] { dense.mul_(factor); });
        return dense;
    }
    const at::AutoDispatchBelowADInplaceOrView noGradient;
    return at::mul(dense, how.factor).to(dense.scalar_type());
}

void checkSameType(const at::Tensor& one, const at::Tensor& other, const char* operation) {
    TORCH_CHECK_TYPE(one.scalar_type() == other.scalar_type(), "isthmus: ", operation,
                     ": tensors of different types: ", c10::toString(one.scalar_type()), " and ",
                     c10::toString(other.scalar_type()));
}

DenseView::DenseView(const at::Tensor& tensor, Use use, Call& call) : tensor_(tensor) {
    call.admit(tensor);
    if (use != Use::kRead) checkWritable(tensor, call.operation());
    if (!tensor.device().is_cpu()) {
        dense_ = call.staging->hostMemory(tensor.sizes(), tensor.scalar_type());
        if (use != Use::kWrite) call.staging->willLoad(dense_, tensor);
        isCopy_ = true;
        return;
    }
    if (isDense(tensor)) {
        dense_ = tensor;
        return;
    }
    const at::AutoDispatchBelowADInplaceOrView noGradient;
    dense_ =
        at::empty(tensor.sizes(), tensor.options().memory_format(at::MemoryFormat::Contiguous));
    if (use != Use::kWrite) dense_.copy_(tensor);
    isCopy_ = true;
}

void* DenseView::data() const {
    return addressOf(dense_);
}

void DenseView::writeBack() const {
    if (isCopy_) plainCopy(tensor_, dense_);
}

PackedList::PackedList(const std::vector<at::Tensor>& tensors, DenseView::Use use, Call& call)
    : tensors_(tensors) {
    TORCH_CHECK(!tensors.empty(), "isthmus: ", call.operation(), ": the list of tensors is empty");
    call.admit(tensors);
    for (const at::Tensor& tensor : tensors) {
        checkSameType(tensors.front(), tensor, call.operation());
        checkSameDevice(tensors.front(), tensor, call.operation());
        if (use != DenseView::Use::kRead) checkWritable(tensor, call.operation());
    }
    const at::AutoDispatchBelowADInplaceOrView noGradient;
    const std::int64_t elements = totalElements(tensors);
    const bool areOnDevice = !tensors.front().device().is_cpu();
    if (lieOneAfterAnother(tensors)) {
        (areOnDevice ? together_ : dense_) = tensors.front().as_strided({elements}, {1});
        if (!areOnDevice) return;
    }
    isCopy_ = true;
    dense_ = areOnDevice
                 ? call.staging->hostMemory({elements}, tensors.front().scalar_type())
                 : at::empty({elements},
                             tensors.front().options().memory_format(at::MemoryFormat::Contiguous));
    if (use != DenseView::Use::kWrite) load(call);
}

void PackedList::load(Call& call) const {
    if (together_.defined()) {
        call.staging->willLoad(dense_, together_);
        return;
    }
    const std::vector<at::Tensor> places = parts();
    for (std::size_t index = 0; index < places.size(); ++index) {
        if (tensors_[index].device().is_cpu()) {
            places[index].copy_(tensors_[index]);
        } else {
            call.staging->willLoad(places[index], tensors_[index]);
        }
    }
}

std::vector<at::Tensor> PackedList::parts() const {
    std::vector<at::Tensor> all;
    all.reserve(tensors_.size());
    std::int64_t start = 0;
    for (const at::Tensor& tensor : tensors_) {
        all.push_back(dense_.narrow(0, start, tensor.numel()).view(tensor.sizes()));
        start += tensor.numel();
    }
    return all;
}

void* PackedList::data() const {
    return addressOf(dense_);
}

std::vector<std::size_t> PackedList::counts(const Elements& elements) const {
    std::vector<std::size_t> all;
    all.reserve(tensors_.size());
    for (const at::Tensor& tensor : tensors_) all.push_back(elements.of(tensor.numel()));
    return all;
}

bool PackedList::areEqual() const {
    return std::all_of(tensors_.begin(), tensors_.end(), [this](const at::Tensor& tensor) {
        return tensor.numel() == tensors_.front().numel();
    });
}

void PackedList::writeBack() const {
    if (!isCopy_) return;
    if (together_.defined()) {
        plainCopy(together_, dense_);
        return;
    }
    const at::AutoDispatchBelowADInplaceOrView noGradient;
    const std::vector<at::Tensor> places = parts();
    for (std::size_t index = 0; index < places.size(); ++index) {
        plainCopy(tensors_[index], places[index]);
    }
}

at::Tensor apartFrom(const at::Tensor& input, const at::Tensor& output, std::int64_t bytesIn) {
    if (input.numel() == 0 || output.numel() == 0) return input;
    const std::uintptr_t in = placeOf(input);
    const std::uintptr_t out = placeOf(output);
    const bool overlap = in < out + output.nbytes() && out < in + input.nbytes();
    if (!overlap || static_cast<std::int64_t>(in - out) == bytesIn) return input;
    const at::AutoDispatchBelowADInplaceOrView noGradient;
    return input.clone();
}

void plainCopy(const at::Tensor& to, const at::Tensor& from) {
    const at::AutoDispatchBelowADInplaceOrView noGradient;
    to.copy_(from, /*non_blocking=*/true);  // without effect inside host memory
}

void* addressOf(const at::Tensor& tensor) {
    static unsigned char empty = 0;
    return tensor.numel() == 0 ? &empty : tensor.data_ptr();
}

}  // namespace isthmus::glue
