#include "python/csrc/array.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <isthmus/types.hpp>

#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "python/csrc/errors.hpp"

namespace isthmus::python {

namespace {

constexpr int kDlpackCpu = 1;  // dlpack.h: kDLCPU

struct TypeName {
    isthmusDataType_t type;
    const char* name;
};

// numpy's words, and those of ml_dtypes.
constexpr TypeName kTypeNames[] = {
    {isthmusInt8, "int8"},
    {isthmusUint8, "uint8"},
    {isthmusInt16, "int16"},
    {isthmusUint16, "uint16"},
    {isthmusInt32, "int32"},
    {isthmusUint32, "uint32"},
    {isthmusInt64, "int64"},
    {isthmusUint64, "uint64"},
    {isthmusFloat16, "float16"},
    {isthmusBfloat16, "bfloat16"},
    {isthmusFloat32, "float32"},
    {isthmusFloat64, "float64"},
    {isthmusBool, "bool"},
    {isthmusComplex64, "complex64"},
    {isthmusComplex128, "complex128"},
    {isthmusFloat8e4m3, "float8_e4m3fn"},
    {isthmusFloat8e5m2, "float8_e5m2"},
};

std::string typeWords(nb::handle object) {
    return nb::cast<std::string>(nb::str(object.type().attr("__qualname__")));
}

/// What an array calls its element type; "?" when it does not say.
std::string dtypeWords(nb::handle object) {
    if (!nb::hasattr(object, "dtype")) return "?";
    const nb::object dtype = object.attr("dtype");
    return nb::cast<std::string>(nb::str(nb::handle(dtype)));
}

std::optional<isthmusDataType_t> integerOf(std::size_t bytes, bool isSigned) {
    switch (bytes) {
    case 1:
        return isSigned ? isthmusInt8 : isthmusUint8;
    case 2:
        return isSigned ? isthmusInt16 : isthmusUint16;
    case 4:
        return isSigned ? isthmusInt32 : isthmusUint32;
    case 8:
        return isSigned ? isthmusInt64 : isthmusUint64;
    default:
        return {};
    }
}

/// The type of a format of the struct module, in this machine's byte order.
std::optional<isthmusDataType_t> typeOfFormat(std::string_view format, std::size_t bytes) {
    if (!format.empty() && std::string_view("@=<").find(format[0]) != std::string_view::npos)
        format.remove_prefix(1);
    if (format == "?") return isthmusBool;
    if (format == "e") return isthmusFloat16;
    if (format == "f") return isthmusFloat32;
    if (format == "d") return isthmusFloat64;
    if (format == "Zf") return isthmusComplex64;
    if (format == "Zd") return isthmusComplex128;
    if (format.size() != 1) return {};
    if (std::strchr("bhilqn", format[0]) != nullptr) return integerOf(bytes, true);
    if (std::strchr("BHILQN", format[0]) != nullptr) return integerOf(bytes, false);
    return {};
}

std::optional<isthmusDataType_t> typeOfDlpack(nb::dlpack::dtype type) {
    using Code = nb::dlpack::dtype_code;
    if (type.lanes != 1) return {};
    switch (static_cast<Code>(type.code)) {
    case Code::Int:
        return integerOf(type.bits / 8, true);
    case Code::UInt:
        return integerOf(type.bits / 8, false);
    case Code::Float:
        if (type.bits == 16) return isthmusFloat16;
        if (type.bits == 32) return isthmusFloat32;
        if (type.bits == 64) return isthmusFloat64;
        return {};
    case Code::Complex:
        if (type.bits == 64) return isthmusComplex64;
        if (type.bits == 128) return isthmusComplex128;
        return {};
    case Code::Bfloat:
        return type.bits == 16 ? std::optional(isthmusBfloat16) : std::nullopt;
    case Code::Bool:
        return type.bits == 8 ? std::optional(isthmusBool) : std::nullopt;
    case Code::Float8_E4M3FN:
        return isthmusFloat8e4m3;
    case Code::Float8_E5M2:
        return isthmusFloat8e5m2;
    default:
        return {};
    }
}

/// ml_dtypes gives numpy types that fit neither a buffer nor numpy's DLPack.
std::optional<isthmusDataType_t> smallFloatOf(nb::handle object) {
    if (!nb::hasattr(object, "__array_interface__") || !nb::hasattr(object, "dtype")) return {};
    const auto name = nb::cast<std::string>(nb::str(object.attr("dtype").attr("name")));
    for (const auto type : {isthmusBfloat16, isthmusFloat8e4m3, isthmusFloat8e5m2}) {
        if (name == nameOf(type)) return type;
    }
    return {};
}

[[noreturn]] void refuseType(const char* what, const std::string& type) {
    refuse(std::string(what) + ": the element type " + type + " is not served");
}

[[noreturn]] void refuseGaps(const char* what) {
    refuse(std::string(what) + ": the array is not contiguous in C order; copy it first");
}

[[noreturn]] void refuseReadOnly(const char* what) {
    refuse(std::string(what) + ": the array is read-only, and the call writes to it");
}

/// JAX hands out its immutable arrays without DLPack's read-only flag (seen with 0.10.2).
bool isOfJax(nb::handle object) {
    const auto module = nb::cast<std::string>(nb::str(object.type().attr("__module__")));
    return module.starts_with("jax");
}

}  // namespace

const char* nameOf(isthmusDataType_t type) {
    for (const TypeName& each : kTypeNames) {
        if (each.type == type) return each.name;
    }
    return "unknown";
}

std::size_t widthOf(isthmusDataType_t type) {
    return bytesOf(static_cast<DataType>(type));
}

Array Array::toRead(nb::handle object, const char* what) {
    return of(object, what, false);
}

Array Array::toWrite(nb::handle object, const char* what) {
    return of(object, what, true);
}

Array Array::of(nb::handle object, const char* what, bool isOutput) {
    if (object.is_none()) return {};
    if (PyObject_CheckBuffer(object.ptr()) != 0) {
        if (PyObject* view = PyMemoryView_FromObject(object.ptr()); view != nullptr)
            return fromBuffer(nb::steal(view), what, isOutput);
        PyErr_Clear();  // its type may still have another way
    }
    if (smallFloatOf(object)) return fromSmallFloats(object, what, isOutput);
    if (nb::hasattr(object, "__dlpack__")) return fromDlpack(object, what, isOutput);
    if (nb::hasattr(object, "dtype")) refuseType(what, dtypeWords(object));
    const std::string text = std::string(what) + ": " + typeWords(object) +
                             " is no array (neither buffer protocol nor DLPack)";
    throw nb::type_error(text.c_str());
}

Array Array::fromBuffer(nb::object view, const char* what, bool isOutput) {
    const Py_buffer& buffer = *PyMemoryView_GET_BUFFER(view.ptr());
    const auto bytes = static_cast<std::size_t>(buffer.itemsize);
    const std::string_view format = buffer.format == nullptr ? "B" : buffer.format;
    const auto type = typeOfFormat(format, bytes);
    if (!type || bytes == 0) refuseType(what, "of format '" + std::string(format) + "'");
    if (PyBuffer_IsContiguous(&buffer, 'C') == 0) refuseGaps(what);
    if (isOutput && buffer.readonly != 0) refuseReadOnly(what);
    Array array;
    array.data_ = buffer.buf;
    array.elements_ = static_cast<std::size_t>(buffer.len) / bytes;
    array.type_ = *type;
    array.owner_ = std::move(view);
    return array;
}

Array Array::fromSmallFloats(nb::handle object, const char* what, bool isOutput) {
    const isthmusDataType_t type = *smallFloatOf(object);
    if (!nb::cast<bool>(object.attr("flags").attr("c_contiguous"))) refuseGaps(what);
    // Of one element too: numpy cannot view a number without dimensions otherwise.
    const nb::object bits =
        object.attr("reshape")(-1).attr("view")(type == isthmusBfloat16 ? "uint16" : "uint8");
    Array array = of(bits, what, isOutput);
    array.type_ = type;
    return array;
}

Array Array::fromDlpack(nb::handle object, const char* what, bool isOutput) {
    if (isOutput && isOfJax(object)) refuseReadOnly(what);
    nb::ndarray<nb::ro> readable;
    nb::ndarray<> writable;
    const bool isRead = isOutput ? nb::try_cast(object, writable) : nb::try_cast(object, readable);
    if (!isRead) {
        refuse(std::string(what) + ": DLPack gives no memory of this " + typeWords(object) +
               " (of element type " + dtypeWords(object) + "), or only to read");
    }
    const auto take = [&](auto& tensor) {
        if (tensor.device_type() != kDlpackCpu) {
            raise(isthmusUnsupported, std::string(what) + ": the array is on a device (DLPack's " +
                                          std::to_string(tensor.device_type()) +
                                          "); only memory of the host is served");
        }
        const auto type = typeOfDlpack(tensor.dtype());
        if (!type) {
            refuseType(what, "of DLPack's code " + std::to_string(tensor.dtype().code) + " with " +
                                 std::to_string(tensor.dtype().bits) + " bits");
        }
        Array array;
        array.elements_ = tensor.size();
        array.type_ = *type;
        std::int64_t expected = 1;
        for (std::size_t axis = tensor.ndim(); axis-- > 0;) {
            if (tensor.shape(axis) != 1 && tensor.stride(axis) != expected && array.elements_ > 0)
                refuseGaps(what);
            expected *= static_cast<std::int64_t>(tensor.shape(axis));
        }
        array.data_ = const_cast<void*>(static_cast<const void*>(tensor.data()));
        array.owner_ = nb::cast(tensor);
        return array;
    };
    return isOutput ? take(writable) : take(readable);
}

}  // namespace isthmus::python
