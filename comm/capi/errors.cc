#include <string>

#include "comm/capi/handles.hpp"

namespace isthmus {

namespace {
thread_local std::string lastText;
}  // namespace

isthmusResult_t resultOf(const Status& status) {
    if (status.ok()) return isthmusSuccess;
    lastText = status.what();
    return static_cast<isthmusResult_t>(status.code());
}

const char* lastErrorText() {
    return lastText.c_str();
}

}  // namespace isthmus

using isthmus::Status;

isthmusResult_t isthmusGetVersion(int* version) {
    if (version == nullptr) return isthmus::resultOf(Status::invalidArgument("version is null"));
    *version = ISTHMUS_VERSION_CODE;
    return isthmusSuccess;
}

const char* isthmusGetErrorString(isthmusResult_t result) {
    switch (result) {
    case isthmusSuccess:
        return "success";
    case isthmusInvalidArgument:
        return "invalid argument";
    case isthmusMismatch:
        return "ranks disagree";
    case isthmusTimeout:
        return "timeout";
    case isthmusPeerLost:
        return "peer lost";
    case isthmusAborted:
        return "aborted";
    case isthmusConfiguration:
        return "wrong configuration or authentication";
    case isthmusResource:
        return "out of resources";
    case isthmusUnsupported:
        return "not supported here";
    case isthmusInternalError:
        return "internal error";
    }
    return "unknown result code";
}

const char* isthmusGetLastError(isthmusComm_t) {
    return isthmus::lastErrorText();
}
