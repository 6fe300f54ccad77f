#include "python/csrc/operations.hpp"

#include <nanobind/stl/string.h>

#include <atomic>
#include <cstring>
#include <utility>

#include "python/csrc/array.hpp"
#include "python/csrc/communicator.hpp"
#include "python/csrc/errors.hpp"

namespace isthmus::python {

/// A function that the library calls on its threads: with Python's lock, which is never kept while
/// anybody waits for the library.
struct PythonReduction {
    nb::object function;
    std::atomic<bool> hasRaised{false};
    nb::object exception;  ///< guarded by Python's lock
};

namespace {

/// With copies: arrays that the function keeps stay good (numpy.frombuffer does not even tell the
/// view that it looks at), and beside the call of Python they cost little.
void callFunction(PythonReduction& reduction, const void* in, void* inOut, std::size_t bytes,
                  isthmusDataType_t type) {
    const nb::bytes left(in, bytes);
    const nb::bytearray right(inOut, bytes);
    reduction.function(left, right, nameOf(type));
    if (right.size() != bytes) throw nb::value_error("the function changed the size of `right`");
    std::memcpy(inOut, right.data(), bytes);
}

void keep(PythonReduction& reduction, nb::python_error& error) {
    reduction.exception = nb::borrow(error.value());
    reduction.hasRaised = true;
}

void combine(const void* in, void* inOut, std::size_t count, isthmusDataType_t type,
             void* context) {
    auto& reduction = *static_cast<PythonReduction*>(context);
    // Of a Python that ends its lock cannot be had; nobody waits for the result any more.
    if (reduction.hasRaised || !Py_IsInitialized()) return;
    const nb::gil_scoped_acquire locked;
    try {
        callFunction(reduction, in, inOut, count * widthOf(type), type);
    } catch (nb::python_error& error) {
        keep(reduction, error);
    } catch (const std::exception& error) {
        PyErr_SetString(PyExc_ValueError, error.what());
        nb::python_error raised;
        keep(reduction, raised);
    }
}

/// Zero for what has no address.
std::uintptr_t addressOf(const nb::object& function) {
    const nb::object number =
        nb::hasattr(function, "address") ? nb::object(function.attr("address")) : function;
    if (!nb::isinstance<nb::int_>(number)) return 0;
    return nb::cast<std::uintptr_t>(number);
}

int reductionOf(Communicator& self, const std::string& name, nb::object function,
                bool isCommutative) {
    return static_cast<int>(self.reductions().add(self, name, std::move(function), isCommutative));
}

int premulSum(Communicator& self, nb::handle scalar) {
    const Array value = Array::toRead(scalar, "premul_sum: scalar");
    if (value.elements() != 1)
        refuse("premul_sum: the scalar has one element, of the arrays' type");
    isthmusRedOp_t op = isthmusSum;
    self.use([&](isthmusComm_t comm) {
        return isthmusRedOpCreatePreMulSum(&op, value.data(), value.type(),
                                           isthmusScalarHostImmediate, comm);
    });
    return static_cast<int>(op);
}

void freeOp(Communicator& self, int op) {
    self.use([&](isthmusComm_t comm) {
        return isthmusRedOpDestroy(static_cast<isthmusRedOp_t>(op), comm);
    });
}

}  // namespace

Reductions::Reductions() = default;
Reductions::~Reductions() = default;

isthmusRedOp_t Reductions::add(Communicator& communicator, const std::string& name,
                               nb::object function, bool isCommutative) {
    const std::uintptr_t address = addressOf(function);
    if (address == 0 && PyCallable_Check(function.ptr()) == 0)
        throw nb::type_error("reduction: function is neither callable nor an address");
    auto made = std::make_unique<PythonReduction>();
    made->function = std::move(function);
    isthmusRedOp_t op = isthmusSum;
    communicator.use([&](isthmusComm_t comm) {
        // A number is all that Python has of a compiled function.
        const auto compiled =
            reinterpret_cast<isthmusReduction>(address);  // NOLINT(performance-no-int-to-ptr)
        return isthmusRedOpCreate(&op, name.c_str(), address != 0 ? compiled : &combine, made.get(),
                                  isCommutative ? 1 : 0, comm);
    });
    all_.push_back(std::move(made));
    return op;
}

void Reductions::check(Communicator& communicator) {
    for (const auto& each : all_) {
        if (!each->exception.is_valid()) continue;
        const nb::object exception = std::exchange(each->exception, {});
        const std::string why =
            "a reduction raised " + nb::cast<std::string>(nb::str(nb::repr(exception)));
        if (!communicator.isClosed()) communicator.abort(why);
        PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
        throw nb::python_error();
    }
}

void defineOperations(nb::class_<Communicator>& type) {
    type.def("premul_sum", &premulSum, nb::arg("scalar"),
             "An `op` that sums what each rank multiplied by its own scalar (an array of one "
             "element); of this communicator, until free_op().");
    type.def("reduction", &reductionOf, nb::arg("name"), nb::arg("function"),
             nb::arg("commutative") = false,
             "An `op` of the program's own, known to the ranks by its name; of this communicator, "
             "until free_op(). function(left, right, dtype) writes left op right into right: bytes "
             "and a bytearray of whole elements, left of lower ranks; numpy.frombuffer(right, "
             "dtype) gives the numbers. It is called on threads of isthmus; when it raises, the "
             "call does too and the communicator is aborted. Or the address of a compiled "
             "isthmusReduction, such as a numba.cfunc, which needs no lock of Python.");
    type.def("free_op", &freeOp, nb::arg("op"), "Forgets an operation made here.");
}

}  // namespace isthmus::python
