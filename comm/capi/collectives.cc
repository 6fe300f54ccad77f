#include <cstdint>
#include <optional>

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

/// A collective as its caller asked for it; it can be started again and again.
struct Call {
    CallRequest request;
    isthmusDataType_t type = isthmusUint8;
    int op = static_cast<int>(ReduceOp::kSum);
    Displacements displacements{};
    std::optional<double> factor{};  ///< of the input, before it is summed
};

Call callOf(Collective collective, const void* send, void* receive, std::size_t count,
            isthmusDataType_t type) {
    Call call;
    call.request.collective = collective;
    call.request.input = static_cast<const std::byte*>(send);
    call.request.output = static_cast<std::byte*>(receive);
    call.request.counts.uniform = count;
    call.type = type;
    return call;
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

/// An operation that the program made.
Status takeUp(Call& call, const MadeOperations::Entry& made) {
    const auto* const premultiplied = std::get_if<PremulSum>(&made);
    if (premultiplied == nullptr) {
        call.request.reduction = std::get<std::shared_ptr<const UserReduction>>(made);
        return {};
    }
    if (premultiplied->type != call.request.type) {
        return Status::invalidArgument(std::string(nameOf(call.request.collective)) +
                                       ": this premul_sum is of " +
                                       std::string(nameOf(premultiplied->type)) + ", not of " +
                                       std::string(nameOf(call.request.type)));
    }
    call.factor = premultiplied->factor;
    return {};
}

/// Gives numbers of the header their meaning.
Status understand(Call& call, isthmusComm_t comm) {
    const std::string title = std::string(nameOf(call.request.collective)) + ": ";
    const auto type = typeOf(call.type);
    if (!type.ok()) return type.status().within(nameOf(call.request.collective));
    call.request.type = *type;
    if (Status status = checkPlaces(call.displacements, call.request.type); !status.ok())
        return status.within(nameOf(call.request.collective));
    if (const auto made = comm->operations.find(call.op)) return takeUp(call, *made);
    if (call.op < 0 || call.op >= kReduceOps)
        return Status::invalidArgument(title + "unknown reduction " + std::to_string(call.op));
    call.request.op = static_cast<ReduceOp>(call.op);
    return {};
}

std::shared_ptr<Work> start(Communicator& communicator, Call call, const CallOptions& options) {
    return call.factor.has_value()
               ? callPremultiplied(communicator, std::move(call.request), options, *call.factor)
               : callWithDisplacements(communicator, std::move(call.request), options,
                                       call.displacements);
}

isthmusResult_t run(Call call, isthmusComm_t comm, const isthmusCallOptions_t* options,
                    isthmusRequest_t* request) {
    if (request != nullptr) *request = nullptr;
    Status status = checkHandle(comm);
    if (status.ok()) status = understand(call, comm);
    if (!status.ok()) return resultOf(status);
    Communicator& communicator = *comm->communicator;
    const CallOptions how = optionsOf(options, request == nullptr && !isGrouping());
    if (!isPersistent(options))
        return deliver(comm, start(communicator, std::move(call), how), request, nullptr);
    status = communicator.prepare(call.request, how);
    if (!status.ok()) return resultOf(status);
    return deliverInactive(
        comm, [&communicator, call, how] { return start(communicator, call, how); }, request,
        nullptr);
}

std::vector<std::size_t> copyOf(const std::size_t* values, isthmusComm_t comm) {
    if (values == nullptr || comm == nullptr || comm->communicator == nullptr) return {};
    return {values, values + comm->communicator->ranks()};
}

/// Displacements of the root's buffer; other ranks have no such buffer.
std::vector<std::size_t> copyAtRoot(const std::size_t* values, int root, isthmusComm_t comm) {
    return comm->communicator->rank() == root ? copyOf(values, comm) : std::vector<std::size_t>();
}

}  // namespace

isthmusResult_t isthmusAllReduce(const void* sendbuff, void* recvbuff, size_t count,
                                 isthmusDataType_t datatype, isthmusRedOp_t op, isthmusComm_t comm,
                                 const isthmusCallOptions_t* options, isthmusRequest_t* request) {
    Call call = callOf(Collective::kAllReduce, sendbuff, recvbuff, count, datatype);
    call.op = static_cast<int>(op);
    return run(std::move(call), comm, options, request);
}

isthmusResult_t isthmusBroadcast(const void* sendbuff, void* recvbuff, size_t count,
                                 isthmusDataType_t datatype, int root, isthmusComm_t comm,
                                 const isthmusCallOptions_t* options, isthmusRequest_t* request) {
    Call call = callOf(Collective::kBroadcast, sendbuff, recvbuff, count, datatype);
    call.request.root = root;
    return run(std::move(call), comm, options, request);
}

isthmusResult_t isthmusReduce(const void* sendbuff, void* recvbuff, size_t count,
                              isthmusDataType_t datatype, isthmusRedOp_t op, int root,
                              isthmusComm_t comm, const isthmusCallOptions_t* options,
                              isthmusRequest_t* request) {
    Call call = callOf(Collective::kReduce, sendbuff, recvbuff, count, datatype);
    call.op = static_cast<int>(op);
    call.request.root = root;
    return run(std::move(call), comm, options, request);
}

isthmusResult_t isthmusAllGather(const void* sendbuff, void* recvbuff, size_t sendcount,
                                 isthmusDataType_t datatype, isthmusComm_t comm,
                                 const isthmusCallOptions_t* options, isthmusRequest_t* request) {
    return run(callOf(Collective::kAllGather, sendbuff, recvbuff, sendcount, datatype), comm,
               options, request);
}

isthmusResult_t isthmusReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                                     isthmusDataType_t datatype, isthmusRedOp_t op,
                                     isthmusComm_t comm, const isthmusCallOptions_t* options,
                                     isthmusRequest_t* request) {
    Call call = callOf(Collective::kReduceScatter, sendbuff, recvbuff, recvcount, datatype);
    call.op = static_cast<int>(op);
    return run(std::move(call), comm, options, request);
}

isthmusResult_t isthmusAlltoAll(const void* sendbuff, void* recvbuff, size_t count,
                                isthmusDataType_t datatype, isthmusComm_t comm,
                                const isthmusCallOptions_t* options, isthmusRequest_t* request) {
    return run(callOf(Collective::kAllToAll, sendbuff, recvbuff, count, datatype), comm, options,
               request);
}

isthmusResult_t isthmusGather(const void* sendbuff, void* recvbuff, size_t count,
                              isthmusDataType_t datatype, int root, isthmusComm_t comm,
                              const isthmusCallOptions_t* options, isthmusRequest_t* request) {
    Call call = callOf(Collective::kGather, sendbuff, recvbuff, count, datatype);
    call.request.root = root;
    return run(std::move(call), comm, options, request);
}

isthmusResult_t isthmusScatter(const void* sendbuff, void* recvbuff, size_t count,
                               isthmusDataType_t datatype, int root, isthmusComm_t comm,
                               const isthmusCallOptions_t* options, isthmusRequest_t* request) {
    Call call = callOf(Collective::kScatter, sendbuff, recvbuff, count, datatype);
    call.request.root = root;
    return run(std::move(call), comm, options, request);
}

isthmusResult_t isthmusBarrier(isthmusComm_t comm, const isthmusCallOptions_t* options,
                               isthmusRequest_t* request) {
    return run(callOf(Collective::kBarrier, nullptr, nullptr, 0, isthmusUint8), comm, options,
               request);
}

namespace {

/// The v-forms of one count for each rank; `mine` is what this rank says about its own block.
isthmusResult_t runWithCounts(Call call, const std::size_t* counts, const char* countsName,
                              std::size_t mine, const char* mineName, isthmusComm_t comm,
                              const isthmusCallOptions_t* options, isthmusRequest_t* request,
                              Displacements displacements) {
    const std::string title = std::string(nameOf(call.request.collective)) + ": ";
    if (counts == nullptr)
        return resultOf(Status::invalidArgument(title + countsName + " is null"));
    const auto me = static_cast<std::size_t>(comm->communicator->rank());
    call.request.counts.each = copyOf(counts, comm);
    if (mine != counts[me]) {
        return resultOf(Status::invalidArgument(title + mineName + " " + std::to_string(mine) +
                                                " is not " + countsName + "[" + std::to_string(me) +
                                                "] = " + std::to_string(counts[me])));
    }
    call.displacements = std::move(displacements);
    return run(std::move(call), comm, options, request);
}

}  // namespace

isthmusResult_t isthmusAllGatherV(const void* sendbuff, size_t sendcount, void* recvbuff,
                                  const size_t* recvcounts, const size_t* displs,
                                  isthmusDataType_t datatype, isthmusComm_t comm,
                                  const isthmusCallOptions_t* options, isthmusRequest_t* request) {
    if (Status status = checkHandle(comm); !status.ok()) return resultOf(status);
    return runWithCounts(callOf(Collective::kAllGather, sendbuff, recvbuff, 0, datatype),
                         recvcounts, "recvcounts", sendcount, "sendcount", comm, options, request,
                         {{}, copyOf(displs, comm)});
}

isthmusResult_t isthmusGatherV(const void* sendbuff, size_t sendcount, void* recvbuff,
                               const size_t* recvcounts, const size_t* displs,
                               isthmusDataType_t datatype, int root, isthmusComm_t comm,
                               const isthmusCallOptions_t* options, isthmusRequest_t* request) {
    if (Status status = checkHandle(comm); !status.ok()) return resultOf(status);
    Call call = callOf(Collective::kGather, sendbuff, recvbuff, 0, datatype);
    call.request.root = root;
    return runWithCounts(std::move(call), recvcounts, "recvcounts", sendcount, "sendcount", comm,
                         options, request, {{}, copyAtRoot(displs, root, comm)});
}

isthmusResult_t isthmusScatterV(const void* sendbuff, const size_t* sendcounts,
                                const size_t* displs, void* recvbuff, size_t recvcount,
                                isthmusDataType_t datatype, int root, isthmusComm_t comm,
                                const isthmusCallOptions_t* options, isthmusRequest_t* request) {
    if (Status status = checkHandle(comm); !status.ok()) return resultOf(status);
    Call call = callOf(Collective::kScatter, sendbuff, recvbuff, 0, datatype);
    call.request.root = root;
    return runWithCounts(std::move(call), sendcounts, "sendcounts", recvcount, "recvcount", comm,
                         options, request, {copyAtRoot(displs, root, comm), {}});
}

isthmusResult_t isthmusReduceScatterV(const void* sendbuff, void* recvbuff,
                                      const size_t* recvcounts, isthmusDataType_t datatype,
                                      isthmusRedOp_t op, isthmusComm_t comm,
                                      const isthmusCallOptions_t* options,
                                      isthmusRequest_t* request) {
    if (Status status = checkHandle(comm); !status.ok()) return resultOf(status);
    if (recvcounts == nullptr)
        return resultOf(Status::invalidArgument("reduce_scatter: recvcounts is null"));
    Call call = callOf(Collective::kReduceScatter, sendbuff, recvbuff, 0, datatype);
    call.op = static_cast<int>(op);
    call.request.counts.each = copyOf(recvcounts, comm);
    return run(std::move(call), comm, options, request);
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
    Call call = callOf(Collective::kAllToAll, sendbuff, recvbuff, 0, datatype);
    call.request.counts.sent = copyOf(sendcounts, comm);
    call.request.counts.received = copyOf(recvcounts, comm);
    call.displacements = {copyOf(sdispls, comm), copyOf(rdispls, comm)};
    return run(std::move(call), comm, options, request);
}

namespace {

isthmusResult_t transfer(PointToPointRequest request, isthmusDataType_t datatype, size_t count,
                         int tag, int* source, isthmusComm_t comm,
                         const isthmusCallOptions_t* options, isthmusRequest_t* call) {
    if (call != nullptr) *call = nullptr;
    if (Status status = checkHandle(comm); !status.ok()) return resultOf(status);
    const auto type = typeOf(datatype);
    if (!type.ok()) return resultOf(type.status());
    if (tag < 0)
        return resultOf(Status::invalidArgument("tag " + std::to_string(tag) + " is negative"));
    if (count > static_cast<std::size_t>(PTRDIFF_MAX) / bytesOf(*type)) {
        return resultOf(
            Status::invalidArgument("count " + std::to_string(count) + " is too large"));
    }
    request.bytes = count * bytesOf(*type);
    request.tag = static_cast<std::uint32_t>(tag);
    Communicator& communicator = *comm->communicator;
    const CallOptions how = optionsOf(options, call == nullptr && !isGrouping());
    if (!isPersistent(options))
        return deliver(comm, communicator.transfer(std::move(request), how), call, source);
    if (Status status = communicator.prepare(request, how); !status.ok()) return resultOf(status);
    return deliverInactive(
        comm, [&communicator, request, how] { return communicator.transfer(request, how); }, call,
        source);
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
