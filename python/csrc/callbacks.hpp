#pragma once

#include "python/csrc/request.hpp"

namespace isthmus::python {

/// Calls `function(request)` once the call is done, on a thread that exists for this: the library's
/// own must not wait for Python's lock. What it raises is printed.
void callWhenDone(const Request& request, nb::callable function);

/// Ends that thread; what was not called by then is dropped.
void stopCallbacks();

}  // namespace isthmus::python
