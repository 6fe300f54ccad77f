#include "python/csrc/errors.hpp"

namespace isthmus::python {

namespace {

// The class isthmus.Error; the module holds it as long as Python lives.
PyObject* errorClass = nullptr;

constexpr const char* kErrorDoc =
    "What a call ended with: the library's text, and as `code` one of isthmus.Result.";

}  // namespace

void raise(isthmusResult_t code, const std::string& text) {
    const nb::object error = nb::borrow(errorClass)(text.c_str());
    error.attr("code") = nb::cast(code);
    PyErr_SetObject(errorClass, error.ptr());
    throw nb::python_error();
}

void check(isthmusResult_t result) {
    if (result != isthmusSuccess) raise(result, isthmusGetLastError(nullptr));
}

void checkUnlocked(const std::function<isthmusResult_t()>& call) {
    isthmusResult_t result = isthmusSuccess;
    std::string text;
    {
        const nb::gil_scoped_release released;
        result = call();
        if (result != isthmusSuccess) text = isthmusGetLastError(nullptr);
    }
    if (result != isthmusSuccess) raise(result, text);
}

void refuse(const std::string& text) {
    raise(isthmusInvalidArgument, text);
}

void defineErrors(nb::module_& module) {
    nb::enum_<isthmusResult_t>(module, "Result", nb::is_arithmetic(), "Codes of isthmus.h.")
        .value("SUCCESS", isthmusSuccess)
        .value("INVALID_ARGUMENT", isthmusInvalidArgument, "the caller is wrong; nothing started")
        .value("MISMATCH", isthmusMismatch, "ranks disagree on the call")
        .value("TIMEOUT", isthmusTimeout, "a deadline passed")
        .value("PEER_LOST", isthmusPeerLost, "a process or its connection is gone")
        .value("ABORTED", isthmusAborted, "a rank gave up the communicator, or the receive")
        .value("CONFIGURATION", isthmusConfiguration, "environment, options or authentication")
        .value("RESOURCE", isthmusResource, "memory, space or descriptors ran out")
        .value("UNSUPPORTED", isthmusUnsupported, "a valid wish that cannot be served")
        .value("INTERNAL_ERROR", isthmusInternalError, "our fault: please report");
    errorClass = PyErr_NewExceptionWithDoc("isthmus.Error", kErrorDoc, PyExc_RuntimeError, nullptr);
    if (errorClass == nullptr) throw nb::python_error();
    module.attr("Error") = nb::borrow(errorClass);
}

}  // namespace isthmus::python
