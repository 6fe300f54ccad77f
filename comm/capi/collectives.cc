#include <algorithm>

#include "comm/capi/handles.hpp"
#include "comm/communicator/packing.hpp"

using namespace isthmus;  // NOLINT: this file is the C side of that namespace

namespace {

Status checkHandle(isthmusComm_t comm) {
    if (comm == nullptr || comm->communicator == nullptr) {
        return Status::invalidArgument("the communicator is null");
    }
    return {};
}

// Checked as the numbers that C callers may pass: narrowed first, 256 would pass for 0.
Status checkEnums(isthmusDataType_t type, isthmusRedOp_t op) {
    if (const int number = type; number < 0 || number >= kDataTypes) {
        return Status::invalidArgument("unknown data type " + std::to_string(number));
    }
    if (const int number = op; number < 0 || number >= kReduceOps) {
        return Status::invalidArgument("unknown reduction " + std::to_string(number));
    }
    return {};
}

// Offsets inside one buffer must fit a pointer difference.
Status checkPlaces(const Displacements& displacements, DataType type) {
    for (const auto* places : {&displacements.input, &displacements.output}) {
        for (const std::size_t place : *places) {
            if (place > static_cast<std::size_t>(PTRDIFF_MAX) / bytesOf(type)) {
                return Status::invalidArgument("displacement " + std::to_string(place) +
                                               " is too large");
            }
        }
    }
    return {};
}

CallRequest requestOf(Collective collective, const void* send, void* receive, std::size_t count) {
    CallRequest request;
    request.collective = collective;
    request.input = static_cast<const std::byte*>(send);
    request.output = static_cast<std::byte*>(receive);
    request.counts.uniform = count;
    return request;
}

struct Kinds {
    isthmusDataType_t type = isthmusUint8;
    isthmusRedOp_t op = isthmusSum;
};

isthmusResult_t run(CallRequest request, Kinds kinds, isthmusComm_t comm,
                    const isthmusCallOptions_t* options, isthmusRequest_t* call,
                    const Displacements& displacements = {}) {
    if (Status wrong = checkHandle(comm); !wrong.ok()) return resultOf(wrong);
    Communicator& communicator = *comm->communicator;
    Status status = checkEnums(kinds.type, kinds.op);
    if (status.ok()) status = checkPlaces(displacements, static_cast<DataType>(kinds.type));
    if (!status.ok()) {
        if (call != nullptr) *call = nullptr;
        return resultOf(
            status.within(nameOf(request.collective)).within("\"" + communicator.name() + "\""));
    }
    request.type = static_cast<DataType>(kinds.type);
    request.op = static_cast<ReduceOp>(kinds.op);
    const bool isBlocking = call == nullptr && !isGrouping();
    auto work = callWithDisplacements(communicator, std::move(request),
                                      optionsOf(options, isBlocking), displacements);
    return deliver(comm, std::move(work), call, nullptr);
}

std::vector<std::size_t> copyOf(const std::size_t* values, isthmusComm_t comm) {
    if (values == nullptr || comm == nullptr || comm->communicator == nullptr) return {};
    return {values, values + comm->communicator->ranks()};
}

}  // namespace

isthmusResult_t isthmusAllReduce(const void* sendbuff, void* recvbuff, size_t count,
                                 isthmusDataType_t datatype, isthmusRedOp_t op, isthmusComm_t comm,
                                 const isthmusCallOptions_t* options, isthmusRequest_t* request) {
    CallRequest call = requestOf(Collective::kAllReduce, sendbuff, recvbuff, count);
    return run(std::move(call), {datatype, op}, comm, options, request);
}

isthmusResult_t isthmusBroadcast(const void* sendbuff, void* recvbuff, size_t count,
                                 isthmusDataType_t datatype, int root, isthmusComm_t comm,
                                 const isthmusCallOptions_t* options, isthmusRequest_t* request) {
    CallRequest call = requestOf(Collective::kBroadcast, sendbuff, recvbuff, count);
    call.root = root;
    return run(std::move(call), {datatype, isthmusSum}, comm, options, request);
}

isthmusResult_t isthmusReduce(const void* sendbuff, void* recvbuff, size_t count,
                              isthmusDataType_t datatype, isthmusRedOp_t op, int root,
                              isthmusComm_t comm, const isthmusCallOptions_t* options,
                              isthmusRequest_t* request) {
    CallRequest call = requestOf(Collective::kReduce, sendbuff, recvbuff, count);
    call.root = root;
    return run(std::move(call), {datatype, op}, comm, options, request);
}

isthmusResult_t isthmusAllGather(const void* sendbuff, void* recvbuff, size_t sendcount,
                                 isthmusDataType_t datatype, isthmusComm_t comm,
                                 const isthmusCallOptions_t* options, isthmusRequest_t* request) {
    return run(requestOf(Collective::kAllGather, sendbuff, recvbuff, sendcount),
               {datatype, isthmusSum}, comm, options, request);
}

isthmusResult_t isthmusReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                                     isthmusDataType_t datatype, isthmusRedOp_t op,
                                     isthmusComm_t comm, const isthmusCallOptions_t* options,
                                     isthmusRequest_t* request) {
    CallRequest call = requestOf(Collective::kReduceScatter, sendbuff, recvbuff, recvcount);
    return run(std::move(call), {datatype, op}, comm, options, request);
}

isthmusResult_t isthmusAlltoAll(const void* sendbuff, void* recvbuff, size_t count,
                                isthmusDataType_t datatype, isthmusComm_t comm,
                                const isthmusCallOptions_t* options, isthmusRequest_t* request) {
    return run(requestOf(Collective::kAllToAll, sendbuff, recvbuff, count), {datatype, isthmusSum},
               comm, options, request);
}

isthmusResult_t isthmusGather(const void* sendbuff, void* recvbuff, size_t count,
                              isthmusDataType_t datatype, int root, isthmusComm_t comm,
                              const isthmusCallOptions_t* options, isthmusRequest_t* request) {
    CallRequest call = requestOf(Collective::kGather, sendbuff, recvbuff, count);
    call.root = root;
    return run(std::move(call), {datatype, isthmusSum}, comm, options, request);
}

isthmusResult_t isthmusScatter(const void* sendbuff, void* recvbuff, size_t count,
                               isthmusDataType_t datatype, int root, isthmusComm_t comm,
                               const isthmusCallOptions_t* options, isthmusRequest_t* request) {
    CallRequest call = requestOf(Collective::kScatter, sendbuff, recvbuff, count);
    call.root = root;
    return run(std::move(call), {datatype, isthmusSum}, comm, options, request);
}

isthmusResult_t isthmusBarrier(isthmusComm_t comm, const isthmusCallOptions_t* options,
                               isthmusRequest_t* request) {
    return run(CallRequest(), {}, comm, options, request);
}

isthmusResult_t isthmusAllGatherV(const void* sendbuff, size_t sendcount, void* recvbuff,
                                  const size_t* recvcounts, const size_t* displs,
                                  isthmusDataType_t datatype, isthmusComm_t comm,
                                  const isthmusCallOptions_t* options, isthmusRequest_t* request) {
    if (Status status = checkHandle(comm); !status.ok()) return resultOf(status);
    if (recvcounts == nullptr)
        return resultOf(Status::invalidArgument("all_gather: recvcounts is null"));
    CallRequest call = requestOf(Collective::kAllGather, sendbuff, recvbuff, 0);
    call.counts.each = copyOf(recvcounts, comm);
    const Rank me = comm->communicator->rank();
    if (sendcount != call.counts.each[me]) {
        return resultOf(Status::invalidArgument(
            "all_gather: sendcount " + std::to_string(sendcount) + " is not recvcounts[" +
            std::to_string(me) + "] = " + std::to_string(call.counts.each[me])));
    }
    return run(std::move(call), {datatype, isthmusSum}, comm, options, request,
               {{}, copyOf(displs, comm)});
}

isthmusResult_t isthmusReduceScatterV(const void* sendbuff, void* recvbuff,
                                      const size_t* recvcounts, isthmusDataType_t datatype,
                                      isthmusRedOp_t op, isthmusComm_t comm,
                                      const isthmusCallOptions_t* options,
                                      isthmusRequest_t* request) {
    if (Status status = checkHandle(comm); !status.ok()) return resultOf(status);
    if (recvcounts == nullptr)
        return resultOf(Status::invalidArgument("reduce_scatter: recvcounts is null"));
    CallRequest call = requestOf(Collective::kReduceScatter, sendbuff, recvbuff, 0);
    call.counts.each = copyOf(recvcounts, comm);
    return run(std::move(call), {datatype, op}, comm, options, request);
}

isthmusResult_t isthmusAlltoAllV(const void* sendbuff, const size_t* sendcounts,
                                 const size_t* sdispls, void* recvbuff, const size_t* recvcounts,
                                 const size_t* rdispls, isthmusDataType_t datatype,
                                 isthmusComm_t comm, const isthmusCallOptions_t* options,
                                 isthmusRequest_t* request) {
    if (Status status = checkHandle(comm); !status.ok()) return resultOf(status);
    if (sendcounts == nullptr || recvcounts == nullptr) {
        return resultOf(Status::invalidArgument("all_to_all: sendcounts or recvcounts is null"));
    }
    CallRequest call = requestOf(Collective::kAllToAll, sendbuff, recvbuff, 0);
    call.counts.sent = copyOf(sendcounts, comm);
    call.counts.received = copyOf(recvcounts, comm);
    return run(std::move(call), {datatype, isthmusSum}, comm, options, request,
               {copyOf(sdispls, comm), copyOf(rdispls, comm)});
}

namespace {

isthmusResult_t transfer(PointToPointRequest request, isthmusDataType_t datatype, size_t count,
                         int tag, int* source, isthmusComm_t comm,
                         const isthmusCallOptions_t* options, isthmusRequest_t* call) {
    if (Status status = checkHandle(comm); !status.ok()) return resultOf(status);
    if (call != nullptr) *call = nullptr;
    if (Status status = checkEnums(datatype, isthmusSum); !status.ok()) return resultOf(status);
    const auto type = static_cast<DataType>(datatype);
    if (tag < 0)
        return resultOf(Status::invalidArgument("tag " + std::to_string(tag) + " is negative"));
    if (count > static_cast<std::size_t>(PTRDIFF_MAX) / bytesOf(type)) {
        return resultOf(
            Status::invalidArgument("count " + std::to_string(count) + " is too large"));
    }
    request.bytes = count * bytesOf(type);
    request.tag = static_cast<std::uint32_t>(tag);
    const bool isBlocking = call == nullptr && !isGrouping();
    auto work = comm->communicator->transfer(std::move(request), optionsOf(options, isBlocking));
    return deliver(comm, std::move(work), call, source);
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
