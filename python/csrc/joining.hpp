#pragma once

#include <isthmus/isthmus.h>

#include <functional>

namespace isthmus::python {

/// Runs a collective that makes a communicator on a thread of its own, so that Ctrl-C is answered
/// here meanwhile. When a signal's handler raises, the thread goes on to its deadline and gives
/// back what it made. Raises isthmus.Error. May give null. With Python's lock, which waiting
/// releases.
isthmusComm_t join(std::function<isthmusResult_t(isthmusComm_t*)> make);

}  // namespace isthmus::python
