#pragma once

#include <isthmus/isthmus.h>

#include <functional>
#include <memory>
#include <optional>

#include "comm/capi/made_operations.hpp"
#include "comm/communicator/communicator.hpp"

namespace isthmus {
using StartCall = std::function<std::shared_ptr<Work>()>;
}  // namespace isthmus

struct isthmusComm {
    std::shared_ptr<isthmus::Communicator> communicator;
    isthmus::MadeOperations operations{};
};

struct isthmusRequest {
    std::shared_ptr<isthmus::Communicator> communicator;  ///< may outlive its handle
    std::shared_ptr<isthmus::Work> work;  ///< null: a persistent one that is inactive
    int* source = nullptr;
    isthmus::StartCall start{};  ///< of a persistent one
};

namespace isthmus {

/// Remembers the text for isthmusGetLastError() on this thread and gives the code.
isthmusResult_t resultOf(const Status& status);
const char* lastErrorText();

/// Refuses a structure of the caller's whose first field was never set.
Status checkSize(std::size_t bytes, const char* structure, std::size_t least = sizeof(std::size_t));
inline Status checkSize(const isthmusConfig_t* config) {
    return config == nullptr ? Status() : checkSize(config->size, "isthmusConfig_t");
}
inline Status checkSize(const isthmusCallOptions_t* options) {
    return options == nullptr ? Status() : checkSize(options->size, "isthmusCallOptions_t");
}

/// The timeout (0: none given) when nothing else is but patience; else nothing.
std::optional<std::chrono::milliseconds> onlyTimeoutOf(const isthmusCallOptions_t* options);
/// How long a call with a request waits before it gives one; 0: not at all.
std::chrono::milliseconds patienceOf(const isthmusCallOptions_t* options);
/// Of a call of this thread, which is blocking where it must end or has patience, and no group
/// open.
CallOptions optionsOf(const isthmusCallOptions_t* options, bool mustEnd);
/// C callers can pass any number as an enumerator: narrowed to one byte first, 256 would pass for
/// 0.
Result<DataType> typeOf(isthmusDataType_t type);

/// 0 and less: 0, which means the default; more than anybody waits for: ten years.
std::chrono::milliseconds timeoutOf(std::int64_t milliseconds);

bool isPersistent(const isthmusCallOptions_t* options);
CommunicatorConfig configOf(const isthmusConfig_t* config, int ranks);

/// The end of every call: those that were waited for give their result, others a request; inside a
/// group it waits for the group's end.
isthmusResult_t deliver(isthmusComm_t comm, std::shared_ptr<Work> work, const CallOptions& how,
                        isthmusRequest_t* request, int* source);

/// The end of a persistent call's making: an inactive request, for isthmusStart.
isthmusResult_t deliverInactive(isthmusComm_t comm, StartCall start, isthmusRequest_t* request,
                                int* source);

/// True between isthmusGroupStart and isthmusGroupEnd of this thread: calls are started without
/// waiting.
bool isGrouping();
void joinGroup(isthmusComm_t comm, std::shared_ptr<Work> work, int* source);
/// The group's end gives the first failure of its calls, those that were never started included.
void noteInGroup(const Status& failure);

}  // namespace isthmus
