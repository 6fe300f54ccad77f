#pragma once

#include <isthmus/isthmus.h>
#include <nanobind/nanobind.h>

#include <functional>
#include <string>

namespace isthmus::python {

namespace nb = nanobind;

/// Raises isthmus.Error with this code and text.
[[noreturn]] void raise(isthmusResult_t code, const std::string& text);

/// Raises for everything but success, with the text that the library left on this thread.
void check(isthmusResult_t result);

/// The same for a call that is made without Python's lock, which a function of Python inside the
/// library may want.
void checkUnlocked(const std::function<isthmusResult_t()>& call);

/// The caller is wrong, and nothing was started.
[[noreturn]] void refuse(const std::string& text);

void defineErrors(nb::module_& module);

}  // namespace isthmus::python
