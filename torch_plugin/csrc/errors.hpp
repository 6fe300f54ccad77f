#pragma once

#include <isthmus/isthmus.h>

#include <exception>
#include <string>

namespace isthmus::glue {

/// How a call ended, as the C API says it.
struct Outcome {
    isthmusResult_t result = isthmusSuccess;
    std::string text;

    bool ok() const { return result == isthmusSuccess; }

    /// Takes the text of this thread's last failure.
    static Outcome of(isthmusResult_t result);
};

/// The exception that torch hands to Python: ValueError for a wrong argument, NotImplementedError
/// for what this build cannot do, DistBackendError (a RuntimeError) for everything between ranks.
std::exception_ptr exceptionOf(const Outcome& outcome, const char* operation);

/// Throws exceptionOf() unless `outcome` is good.
void throwUnlessOk(const Outcome& outcome, const char* operation);

}  // namespace isthmus::glue
