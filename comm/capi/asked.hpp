#pragma once

#include <optional>
#include <utility>

#include "comm/capi/handles.hpp"
#include "comm/communicator/packing.hpp"

namespace isthmus {

Status checkHandle(isthmusComm_t comm);

/// A failure of what cannot be started; the open group remembers it.
isthmusResult_t refused(const Status& status);

/// A collective as its caller asked for it; it can be started again and again.
struct AskedCall {
    CallRequest request;
    isthmusDataType_t type = isthmusUint8;
    int op = static_cast<int>(ReduceOp::kSum);
    Displacements displacements{};
    std::optional<double> factor{};  ///< of the input, before it is summed

    static AskedCall of(Collective collective, const void* send, void* receive, std::size_t count,
                        isthmusDataType_t type);

    /// Gives numbers of the header their meaning.
    Status understand(isthmusComm_t comm);
    /// Finds what is wrong and chooses plans.
    Status prepare(Communicator& communicator, const CallOptions& options);
    std::shared_ptr<Work> start(Communicator& communicator, const CallOptions& options) &&;
};

/// The one way from an asked call of any form to its start: now, or whenever isthmusStart says so.
template <typename Asked>
isthmusResult_t launch(Asked&& asked, isthmusComm_t comm, const isthmusCallOptions_t* options,
                       isthmusRequest_t* request, int* source = nullptr) {
    if (Status status = checkSize(options); !status.ok()) return refused(status);
    Communicator& communicator = *comm->communicator;
    const CallOptions how = optionsOf(options, request == nullptr);
    if (!isPersistent(options)) {
        auto work = std::forward<Asked>(asked).start(communicator, how);
        return deliver(comm, std::move(work), how, request, source);
    }
    if (Status status = asked.prepare(communicator, how); !status.ok()) return refused(status);
    return deliverInactive(
        comm,
        [&communicator, asked = std::forward<Asked>(asked), how] {
            Asked again = asked;
            return std::move(again).start(communicator, how);
        },
        request, source);
}

}  // namespace isthmus
