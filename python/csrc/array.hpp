#pragma once

#include <isthmus/isthmus.h>
#include <nanobind/nanobind.h>

#include <cstddef>

namespace isthmus::python {

namespace nb = nanobind;

const char* nameOf(isthmusDataType_t type);
/// Bytes of an element.
std::size_t widthOf(isthmusDataType_t type);

/// Memory of somebody's array, kept alive and in its place while this lives. Python's lock is
/// needed to make one and to let it go.
class Array {
public:
    Array() = default;

    /// Memory of `object` to read from. `what` is for messages: "all_reduce: send". None gives no
    /// memory and no elements. Raises isthmus.Error for what cannot be used, TypeError for what is
    /// no array.
    static Array toRead(nb::handle object, const char* what);
    static Array toWrite(nb::handle object, const char* what);

    void* data() const { return data_; }
    std::size_t elements() const { return elements_; }
    isthmusDataType_t type() const { return type_; }
    bool isNone() const { return !owner_.is_valid(); }

private:
    static Array of(nb::handle object, const char* what, bool isOutput);
    static Array fromBuffer(nb::object view, const char* what, bool isOutput);
    static Array fromSmallFloats(nb::handle object, const char* what, bool isOutput);
    static Array fromDlpack(nb::handle object, const char* what, bool isOutput);

    nb::object owner_;  ///< a memoryview, or what holds a DLPack tensor
    void* data_ = nullptr;
    std::size_t elements_ = 0;
    isthmusDataType_t type_ = isthmusUint8;
};

}  // namespace isthmus::python
