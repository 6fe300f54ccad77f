#pragma once

#include <isthmus/isthmus.h>

#include <memory>
#include <string>

#include "comm/communicator/communicator.hpp"

struct isthmusComm {
    std::unique_ptr<isthmus::Communicator> communicator;
};

struct isthmusRequest {
    isthmusComm_t comm = nullptr;
    std::shared_ptr<isthmus::Work> work;
    int* source = nullptr;
};

namespace isthmus {

/// Remembers the text for isthmusGetLastError() on this thread and gives the code.
isthmusResult_t resultOf(const Status& status);
const char* lastErrorText();

CallOptions optionsOf(const isthmusCallOptions_t* options, bool isBlocking);
CommunicatorConfig configOf(const isthmusConfig_t* config, int ranks);

/// The end of every call: blocking ones give their result, others a request; inside a group it
/// waits for the group's end.
isthmusResult_t deliver(isthmusComm_t comm, std::shared_ptr<Work> work, isthmusRequest_t* request,
                        int* source);

/// True between isthmusGroupStart and isthmusGroupEnd of this thread: calls are started without
/// waiting.
bool isGrouping();
void joinGroup(isthmusComm_t comm, std::shared_ptr<Work> work, int* source);

}  // namespace isthmus
