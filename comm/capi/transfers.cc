#include "comm/capi/asked.hpp"

using namespace isthmus;  // NOLINT: this file is the C side of that namespace

namespace {

struct AskedTransfer {
    PointToPointRequest request;

    Status prepare(Communicator& communicator, const CallOptions& options) {
        return communicator.prepare(request, options);
    }
    std::shared_ptr<Work> start(Communicator& communicator, const CallOptions& options) && {
        return communicator.transfer(std::move(request), options);
    }
};

isthmusResult_t transfer(PointToPointRequest request, isthmusDataType_t datatype, size_t count,
                         int tag, int* source, isthmusComm_t comm,
                         const isthmusCallOptions_t* options, isthmusRequest_t* call) {
    if (call != nullptr) *call = nullptr;
    if (Status status = checkHandle(comm); !status.ok()) return refused(status);
    const auto type = typeOf(datatype);
    if (!type.ok()) return refused(type.status());
    if (tag < 0)
        return refused(Status::invalidArgument("tag " + std::to_string(tag) + " is negative"));
    if (count > static_cast<std::size_t>(PTRDIFF_MAX) / bytesOf(*type)) {
        return refused(Status::invalidArgument("count " + std::to_string(count) + " is too large"));
    }
    request.bytes = count * bytesOf(*type);
    request.tag = static_cast<std::uint32_t>(tag);
    return launch(AskedTransfer{std::move(request)}, comm, options, call, source);
}

}  // namespace

isthmusResult_t isthmusSend(const void* sendbuff, size_t count, isthmusDataType_t datatype,
                            int peer, int tag, isthmusComm_t comm,
                            const isthmusCallOptions_t* options, isthmusRequest_t* request) {
    PointToPointRequest call;
    call.isSend = true;
    call.peer = peer;
    call.buffer = static_cast<std::byte*>(const_cast<void*>(sendbuff));  // only read: isSend
    return transfer(std::move(call), datatype, count, tag, nullptr, comm, options, request);
}

isthmusResult_t isthmusRecv(void* recvbuff, size_t count, isthmusDataType_t datatype, int peer,
                            int tag, int* source, isthmusComm_t comm,
                            const isthmusCallOptions_t* options, isthmusRequest_t* request) {
    PointToPointRequest call;
    call.peer = peer;
    call.buffer = static_cast<std::byte*>(recvbuff);
    return transfer(std::move(call), datatype, count, tag, source, comm, options, request);
}
