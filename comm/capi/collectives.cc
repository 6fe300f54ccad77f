#include "comm/capi/asked.hpp"

using namespace isthmus;  // NOLINT: this file is the C side of that namespace

namespace {

isthmusResult_t run(AskedCall&& call, isthmusComm_t comm, const isthmusCallOptions_t* options,
                    isthmusRequest_t* request) {
    if (request != nullptr) *request = nullptr;
    Status status = checkHandle(comm);
    if (status.ok()) status = call.understand(comm);
    return status.ok() ? launch(std::move(call), comm, options, request) : refused(status);
}

constexpr int kSum = static_cast<int>(ReduceOp::kSum);

/// A collective of one count.
struct PlainCall {
    Collective collective = Collective::kBarrier;
    const void* send = nullptr;
    void* receive = nullptr;
    std::size_t count = 0;
    isthmusDataType_t type = isthmusUint8;
    int op = kSum;
    int root = 0;
};

/// Nothing when it must go the way of all calls: whatever is out of the ordinary, and what is
/// wrong.
std::optional<isthmusResult_t> tryQuickly(const PlainCall& call, isthmusComm_t comm,
                                          const isthmusCallOptions_t* options,
                                          isthmusRequest_t* request) {
    constexpr std::size_t kMostElements = 4096;  // more never meets once
    if (comm == nullptr || comm->communicator == nullptr || isGrouping()) return std::nullopt;
    const auto patience = request == nullptr ? std::chrono::milliseconds(0) : patienceOf(options);
    if (request != nullptr && patience.count() == 0) return std::nullopt;
    const auto timeout = onlyTimeoutOf(options);
    const bool isKnown = static_cast<unsigned>(call.type) < kDataTypes &&
                         static_cast<unsigned>(call.op) < kReduceOps;
    if (!timeout.has_value() || !isKnown || call.count > kMostElements) return std::nullopt;
    const QuickCall quick = {{call.collective, static_cast<DataType>(call.type),
                              static_cast<ReduceOp>(call.op), call.root, call.count},
                             static_cast<const std::byte*>(call.send),
                             static_cast<std::byte*>(call.receive)};
    auto called = comm->communicator->callQuickly(quick, *timeout, patience);
    if (!called.has_value()) return std::nullopt;
    const CallOptions how{.isBlocking = true, .patience = patience};
    if (called->open) return deliver(comm, std::move(called->open), how, request, nullptr);
    if (request != nullptr) *request = nullptr;
    return resultOf(called->status);
}

isthmusResult_t run(const PlainCall& call, isthmusComm_t comm, const isthmusCallOptions_t* options,
                    isthmusRequest_t* request) {
    if (const auto result = tryQuickly(call, comm, options, request)) return *result;
    AskedCall asked =
        AskedCall::of(call.collective, call.send, call.receive, call.count, call.type);
    asked.op = call.op;
    asked.request.root = call.root;
    return run(std::move(asked), comm, options, request);
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
    return run({Collective::kAllReduce, sendbuff, recvbuff, count, datatype, static_cast<int>(op)},
               comm, options, request);
}

isthmusResult_t isthmusBroadcast(const void* sendbuff, void* recvbuff, size_t count,
                                 isthmusDataType_t datatype, int root, isthmusComm_t comm,
                                 const isthmusCallOptions_t* options, isthmusRequest_t* request) {
    return run({Collective::kBroadcast, sendbuff, recvbuff, count, datatype, kSum, root}, comm,
               options, request);
}

isthmusResult_t isthmusReduce(const void* sendbuff, void* recvbuff, size_t count,
                              isthmusDataType_t datatype, isthmusRedOp_t op, int root,
                              isthmusComm_t comm, const isthmusCallOptions_t* options,
                              isthmusRequest_t* request) {
    return run(
        {Collective::kReduce, sendbuff, recvbuff, count, datatype, static_cast<int>(op), root},
        comm, options, request);
}

isthmusResult_t isthmusAllGather(const void* sendbuff, void* recvbuff, size_t sendcount,
                                 isthmusDataType_t datatype, isthmusComm_t comm,
                                 const isthmusCallOptions_t* options, isthmusRequest_t* request) {
    return run({Collective::kAllGather, sendbuff, recvbuff, sendcount, datatype}, comm, options,
               request);
}

isthmusResult_t isthmusReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                                     isthmusDataType_t datatype, isthmusRedOp_t op,
                                     isthmusComm_t comm, const isthmusCallOptions_t* options,
                                     isthmusRequest_t* request) {
    return run(
        {Collective::kReduceScatter, sendbuff, recvbuff, recvcount, datatype, static_cast<int>(op)},
        comm, options, request);
}

isthmusResult_t isthmusAlltoAll(const void* sendbuff, void* recvbuff, size_t count,
                                isthmusDataType_t datatype, isthmusComm_t comm,
                                const isthmusCallOptions_t* options, isthmusRequest_t* request) {
    return run({Collective::kAllToAll, sendbuff, recvbuff, count, datatype}, comm, options,
               request);
}

isthmusResult_t isthmusGather(const void* sendbuff, void* recvbuff, size_t count,
                              isthmusDataType_t datatype, int root, isthmusComm_t comm,
                              const isthmusCallOptions_t* options, isthmusRequest_t* request) {
    return run({Collective::kGather, sendbuff, recvbuff, count, datatype, kSum, root}, comm,
               options, request);
}

isthmusResult_t isthmusScatter(const void* sendbuff, void* recvbuff, size_t count,
                               isthmusDataType_t datatype, int root, isthmusComm_t comm,
                               const isthmusCallOptions_t* options, isthmusRequest_t* request) {
    return run({Collective::kScatter, sendbuff, recvbuff, count, datatype, kSum, root}, comm,
               options, request);
}

isthmusResult_t isthmusBarrier(isthmusComm_t comm, const isthmusCallOptions_t* options,
                               isthmusRequest_t* request) {
    return run(PlainCall(), comm, options, request);
}

namespace {

/// The v-forms of one count for each rank; `mine` is what this rank says about its own block.
isthmusResult_t runWithCounts(AskedCall call, const std::size_t* counts, const char* countsName,
                              std::size_t mine, const char* mineName, isthmusComm_t comm,
                              const isthmusCallOptions_t* options, isthmusRequest_t* request,
                              Displacements displacements) {
    const std::string title = std::string(nameOf(call.request.collective)) + ": ";
    if (counts == nullptr) return refused(Status::invalidArgument(title + countsName + " is null"));
    const auto me = static_cast<std::size_t>(comm->communicator->rank());
    call.request.counts.each = copyOf(counts, comm);
    if (mine != counts[me]) {
        return refused(Status::invalidArgument(title + mineName + " " + std::to_string(mine) +
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
    if (Status status = checkHandle(comm); !status.ok()) return refused(status);
    return runWithCounts(AskedCall::of(Collective::kAllGather, sendbuff, recvbuff, 0, datatype),
                         recvcounts, "recvcounts", sendcount, "sendcount", comm, options, request,
                         {{}, copyOf(displs, comm)});
}

isthmusResult_t isthmusGatherV(const void* sendbuff, size_t sendcount, void* recvbuff,
                               const size_t* recvcounts, const size_t* displs,
                               isthmusDataType_t datatype, int root, isthmusComm_t comm,
                               const isthmusCallOptions_t* options, isthmusRequest_t* request) {
    if (Status status = checkHandle(comm); !status.ok()) return refused(status);
    AskedCall call = AskedCall::of(Collective::kGather, sendbuff, recvbuff, 0, datatype);
    call.request.root = root;
    return runWithCounts(std::move(call), recvcounts, "recvcounts", sendcount, "sendcount", comm,
                         options, request, {{}, copyAtRoot(displs, root, comm)});
}

isthmusResult_t isthmusScatterV(const void* sendbuff, const size_t* sendcounts,
                                const size_t* displs, void* recvbuff, size_t recvcount,
                                isthmusDataType_t datatype, int root, isthmusComm_t comm,
                                const isthmusCallOptions_t* options, isthmusRequest_t* request) {
    if (Status status = checkHandle(comm); !status.ok()) return refused(status);
    AskedCall call = AskedCall::of(Collective::kScatter, sendbuff, recvbuff, 0, datatype);
    call.request.root = root;
    return runWithCounts(std::move(call), sendcounts, "sendcounts", recvcount, "recvcount", comm,
                         options, request, {copyAtRoot(displs, root, comm), {}});
}

isthmusResult_t isthmusReduceScatterV(const void* sendbuff, void* recvbuff,
                                      const size_t* recvcounts, isthmusDataType_t datatype,
                                      isthmusRedOp_t op, isthmusComm_t comm,
                                      const isthmusCallOptions_t* options,
                                      isthmusRequest_t* request) {
    if (Status status = checkHandle(comm); !status.ok()) return refused(status);
    if (recvcounts == nullptr)
        return refused(Status::invalidArgument("reduce_scatter: recvcounts is null"));
    AskedCall call = AskedCall::of(Collective::kReduceScatter, sendbuff, recvbuff, 0, datatype);
    call.op = static_cast<int>(op);
    call.request.counts.each = copyOf(recvcounts, comm);
    return run(std::move(call), comm, options, request);
}

isthmusResult_t isthmusAlltoAllV(const void* sendbuff, const size_t* sendcounts,
                                 const size_t* sdispls, void* recvbuff, const size_t* recvcounts,
                                 const size_t* rdispls, isthmusDataType_t datatype,
                                 isthmusComm_t comm, const isthmusCallOptions_t* options,
                                 isthmusRequest_t* request) {
    if (Status status = checkHandle(comm); !status.ok()) return refused(status);
    if (sendcounts == nullptr || recvcounts == nullptr) {
        return refused(Status::invalidArgument("all_to_all: sendcounts or recvcounts is null"));
    }
    AskedCall call = AskedCall::of(Collective::kAllToAll, sendbuff, recvbuff, 0, datatype);
    call.request.counts.sent = copyOf(sendcounts, comm);
    call.request.counts.received = copyOf(recvcounts, comm);
    call.displacements = {copyOf(sdispls, comm), copyOf(rdispls, comm)};
    return run(std::move(call), comm, options, request);
}
