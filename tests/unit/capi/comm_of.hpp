#pragma once

#include <memory>
#include <string>

#include "comm/capi/handles.hpp"

namespace isthmus::test {

/// A handle of the C API to a communicator that somebody else owns.
class CommOf {
public:
    explicit CommOf(Communicator& communicator)
        : comm_{std::shared_ptr<Communicator>(&communicator, [](Communicator*) {})} {}
    CommOf(const CommOf&) = delete;
    CommOf& operator=(const CommOf&) = delete;

    operator isthmusComm_t() { return &comm_; }

private:
    isthmusComm comm_;
};

inline std::string lastError() {
    return isthmusGetLastError(nullptr);
}

inline isthmusCallOptions_t persistent() {
    isthmusCallOptions_t options = ISTHMUS_CALL_OPTIONS_INITIALIZER;
    options.persistent = 1;
    return options;
}

}  // namespace isthmus::test
