#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include "python/csrc/callbacks.hpp"
#include "python/csrc/errors.hpp"
#include "python/csrc/request.hpp"

namespace isthmus::python {

namespace {

std::string version() {
    int code = 0;
    check(isthmusGetVersion(&code));
    constexpr int kMajor = 10000;  // isthmus.h: major * 10000 + minor * 100 + patch
    constexpr int kMinor = 100;
    return std::to_string(code / kMajor) + "." + std::to_string(code % kMajor / kMinor) + "." +
           std::to_string(code % kMinor);
}

void freeMemory(void* memory) noexcept {
    isthmusMemFree(memory);
}

nb::object allocate(std::size_t bytes) {
    void* memory = nullptr;
    check(isthmusMemAlloc(&memory, bytes > 0 ? bytes : 1));
    const nb::capsule owner(memory, &freeMemory);
    return nb::cast(nb::ndarray<nb::memview, std::uint8_t, nb::ndim<1>>(memory, {bytes}, owner));
}

}  // namespace

void defineMemory(nb::module_& module) {
    module.def("allocate", &allocate, nb::arg("nbytes"),
               "A memoryview of zeros that the ranks of this node map; freed with it.");
}

}  // namespace isthmus::python

NB_MODULE(_communicator, module) {
    using namespace isthmus::python;  // NOLINT: this function is of that namespace
    // Of objects that live when Python ends, which programs may leave to it.
    nb::set_leak_warnings(false);
    module.doc() = "The calls of isthmus.h; see the package isthmus.";
    defineErrors(module);
    nb::enum_<isthmusRedOp_t>(module, "Op", nb::is_arithmetic(), "How arrays are reduced.")
        .value("SUM", isthmusSum)
        .value("PROD", isthmusProd)
        .value("MIN", isthmusMin, "a NaN anywhere makes the result NaN")
        .value("MAX", isthmusMax)
        .value("AVG", isthmusAvg, "floating and complex types only")
        .value("BAND", isthmusBand)
        .value("BOR", isthmusBor)
        .value("BXOR", isthmusBxor);
    module.attr("ANY_SOURCE") = ISTHMUS_ANY_SOURCE;
    defineRequests(module);
    defineCommunicators(module);
    defineMemory(module);
    module.def("version", &version, "The version of the library, as '0.1.0'.");
    nb::module_::import_("atexit").attr("register")(nb::cpp_function([] {
        stopCallbacks();
        leaveAll();
    }));
}
