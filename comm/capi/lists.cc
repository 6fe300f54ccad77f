#include <tuple>
#include <utility>

#include "comm/capi/asked.hpp"
#include "comm/communicator/coalesced.hpp"
#include "comm/communicator/neighbors.hpp"

using namespace isthmus;  // NOLINT: this file is the C side of that namespace

namespace {

struct AskedList {
    AskedCall like;  ///< everything but buffers and counts
    CoalescedCall call;

    Status prepare(Communicator& communicator, const CallOptions& options) {
        return call.prepare(communicator, options);
    }
    std::shared_ptr<Work> start(Communicator& communicator, const CallOptions& options) && {
        return call.start(communicator, options, [&](CallRequest request, const CallOptions& how) {
            AskedCall one = like;
            one.request = std::move(request);
            return std::move(one).start(communicator, how);
        });
    }
};

/// The arrays of a coalesced call.
struct Arrays {
    std::size_t tensors;
    const void* const* send;
    void* const* receive;
    const std::size_t* counts;
};

isthmusResult_t run(AskedCall like, const Arrays& arrays, isthmusComm_t comm,
                    const isthmusCallOptions_t* options, isthmusRequest_t* request) {
    if (request != nullptr) *request = nullptr;
    Status status = checkHandle(comm);
    const bool isEmpty =
        arrays.send == nullptr || arrays.receive == nullptr || arrays.counts == nullptr;
    if (status.ok() && isEmpty && arrays.tensors > 0) {
        status = Status::invalidArgument(std::string(nameOf(like.request.collective)) +
                                         ": an array of the tensors is null");
    }
    if (status.ok()) status = like.understand(comm);
    if (status.ok() && arrays.tensors > std::vector<Tensor>().max_size()) {
        status = Status::invalidArgument(std::string(nameOf(like.request.collective)) + ": " +
                                         std::to_string(arrays.tensors) + " tensors are too many");
    }
    if (!status.ok()) return refused(status);
    std::vector<Tensor> tensors(arrays.tensors);
    for (std::size_t index = 0; index < arrays.tensors; ++index) {
        tensors[index] = {static_cast<const std::byte*>(arrays.send[index]),
                          static_cast<std::byte*>(arrays.receive[index]), arrays.counts[index]};
    }
    CoalescedCall call(like.request, std::move(tensors));
    return launch(AskedList{std::move(like), std::move(call)}, comm, options, request);
}

AskedCall likeOf(Collective collective, isthmusDataType_t type) {
    return AskedCall::of(collective, nullptr, nullptr, 0, type);
}

}  // namespace

isthmusResult_t isthmusAllReduceCoalesced(size_t tensors, const void* const* sendbuffs,
                                          void* const* recvbuffs, const size_t* counts,
                                          isthmusDataType_t datatype, isthmusRedOp_t op,
                                          isthmusComm_t comm, const isthmusCallOptions_t* options,
                                          isthmusRequest_t* request) {
    AskedCall like = likeOf(Collective::kAllReduce, datatype);
    like.op = static_cast<int>(op);
    return run(std::move(like), {tensors, sendbuffs, recvbuffs, counts}, comm, options, request);
}

isthmusResult_t isthmusBroadcastCoalesced(size_t tensors, const void* const* sendbuffs,
                                          void* const* recvbuffs, const size_t* counts,
                                          isthmusDataType_t datatype, int root, isthmusComm_t comm,
                                          const isthmusCallOptions_t* options,
                                          isthmusRequest_t* request) {
    AskedCall like = likeOf(Collective::kBroadcast, datatype);
    like.request.root = root;
    return run(std::move(like), {tensors, sendbuffs, recvbuffs, counts}, comm, options, request);
}

isthmusResult_t isthmusAllGatherCoalesced(size_t tensors, const void* const* sendbuffs,
                                          void* const* recvbuffs, const size_t* sendcounts,
                                          isthmusDataType_t datatype, isthmusComm_t comm,
                                          const isthmusCallOptions_t* options,
                                          isthmusRequest_t* request) {
    return run(likeOf(Collective::kAllGather, datatype),
               {tensors, sendbuffs, recvbuffs, sendcounts}, comm, options, request);
}

isthmusResult_t isthmusReduceScatterCoalesced(size_t tensors, const void* const* sendbuffs,
                                              void* const* recvbuffs, const size_t* recvcounts,
                                              isthmusDataType_t datatype, isthmusRedOp_t op,
                                              isthmusComm_t comm,
                                              const isthmusCallOptions_t* options,
                                              isthmusRequest_t* request) {
    AskedCall like = likeOf(Collective::kReduceScatter, datatype);
    like.op = static_cast<int>(op);
    return run(std::move(like), {tensors, sendbuffs, recvbuffs, recvcounts}, comm, options,
               request);
}

isthmusResult_t isthmusAlltoAllCoalesced(size_t tensors, const void* const* sendbuffs,
                                         void* const* recvbuffs, const size_t* counts,
                                         isthmusDataType_t datatype, isthmusComm_t comm,
                                         const isthmusCallOptions_t* options,
                                         isthmusRequest_t* request) {
    return run(likeOf(Collective::kAllToAll, datatype), {tensors, sendbuffs, recvbuffs, counts},
               comm, options, request);
}

namespace {

struct AskedExchange {
    NeighborExchange exchange;

    Status prepare(Communicator& communicator, const CallOptions& options) {
        return exchange.prepare(communicator, options);
    }
    std::shared_ptr<Work> start(Communicator& communicator, const CallOptions& options) && {
        return exchange.start(communicator, options);
    }
};

/// Blocks of one side, in the order of its list.
struct Side {
    const char* title;
    const void* buffer;
    const std::size_t* counts;  ///< null: `count` each
    std::size_t count;
    const std::size_t* places;  ///< null: packed
    int peers = 0;
    const int* peer = nullptr;
};

Result<std::vector<NeighborExchange::Edge>> edgesOf(const Side& side, std::size_t width) {
    const auto wrong = [&](const std::string& what) {
        return Status::invalidArgument(std::string("neighbor_all_to_all: ") + side.title + what);
    };
    if (side.peers < 0 || (side.peers > 0 && side.peer == nullptr)) return wrong(": no list");
    const std::size_t most = static_cast<std::size_t>(PTRDIFF_MAX) / width;
    std::vector<NeighborExchange::Edge> edges;
    std::size_t next = 0;
    for (int i = 0; i < side.peers; ++i) {
        const std::size_t count = side.counts != nullptr ? side.counts[i] : side.count;
        const std::size_t at = side.places != nullptr ? side.places[i] : next;
        if (at > most || count > most - at) return wrong(" " + std::to_string(i) + " is too large");
        if (count > 0 && side.buffer == nullptr) return wrong(": the buffer is null");
        auto* const buffer = static_cast<std::byte*>(const_cast<void*>(side.buffer));
        // Nothing is read nor written at a null buffer: no offset from it either.
        edges.push_back(
            {side.peer[i], buffer == nullptr ? nullptr : buffer + at * width, count * width});
        next = at + count;
    }
    return edges;
}

isthmusResult_t exchange(Side arriving, Side leaving, const isthmusNeighbors_t* neighbors,
                         isthmusDataType_t datatype, isthmusComm_t comm,
                         const isthmusCallOptions_t* options, isthmusRequest_t* request) {
    if (request != nullptr) *request = nullptr;
    if (neighbors == nullptr)
        return refused(Status::invalidArgument("neighbor_all_to_all: neighbors is null"));
    std::tie(arriving.peers, arriving.peer) = std::pair(neighbors->sources, neighbors->source);
    std::tie(leaving.peers, leaving.peer) =
        std::pair(neighbors->destinations, neighbors->destination);
    if (Status status = checkHandle(comm); !status.ok()) return refused(status);
    const auto type = typeOf(datatype);
    if (!type.ok()) return refused(type.status().within("neighbor_all_to_all"));
    auto in = edgesOf(arriving, bytesOf(*type));
    if (!in.ok()) return refused(in.status());
    auto out = edgesOf(leaving, bytesOf(*type));
    if (!out.ok()) return refused(out.status());
    return launch(AskedExchange{NeighborExchange(std::move(*in), std::move(*out))}, comm, options,
                  request);
}

}  // namespace

isthmusResult_t isthmusNeighborAlltoAll(const void* sendbuff, void* recvbuff, size_t count,
                                        isthmusDataType_t datatype,
                                        const isthmusNeighbors_t* neighbors, isthmusComm_t comm,
                                        const isthmusCallOptions_t* options,
                                        isthmusRequest_t* request) {
    return exchange({"source", recvbuff, nullptr, count, nullptr},
                    {"destination", sendbuff, nullptr, count, nullptr}, neighbors, datatype, comm,
                    options, request);
}

isthmusResult_t isthmusNeighborAlltoAllV(const void* sendbuff, const size_t* sendcounts,
                                         const size_t* sdispls, void* recvbuff,
                                         const size_t* recvcounts, const size_t* rdispls,
                                         isthmusDataType_t datatype,
                                         const isthmusNeighbors_t* neighbors, isthmusComm_t comm,
                                         const isthmusCallOptions_t* options,
                                         isthmusRequest_t* request) {
    if (neighbors != nullptr && ((sendcounts == nullptr && neighbors->destinations > 0) ||
                                 (recvcounts == nullptr && neighbors->sources > 0))) {
        return refused(
            Status::invalidArgument("neighbor_all_to_all: sendcounts or recvcounts is null"));
    }
    return exchange({"source", recvbuff, recvcounts, 0, rdispls},
                    {"destination", sendbuff, sendcounts, 0, sdispls}, neighbors, datatype, comm,
                    options, request);
}
