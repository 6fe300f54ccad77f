#include <algorithm>
#include <cstring>

#include "comm/capi/handles.hpp"

using namespace isthmus;  // NOLINT: this file is the C side of that namespace

namespace {

Status checkHandle(isthmusComm_t comm, const void* output = "") {
    if (comm == nullptr || comm->communicator == nullptr)
        return Status::invalidArgument("the communicator is null");
    if (output == nullptr) return Status::invalidArgument("the place for the answer is null");
    return {};
}

}  // namespace

isthmusResult_t isthmusCommSplit(isthmusComm_t comm, int color, int key, isthmusComm_t* newcomm,
                                 const isthmusConfig_t* config) {
    if (Status status = checkHandle(comm, newcomm); !status.ok()) return resultOf(status);
    *newcomm = nullptr;
    if (Status status = checkSize(config); !status.ok()) return resultOf(status);
    // How many ranks share the color, and so how many numbers there are, nobody knows yet.
    if (config != nullptr && !configOf(config, 1).globalRanks.empty()) {
        return resultOf(Status::invalidArgument(
            "split: globalRanks follow from the parent's; leave the field NULL"));
    }
    CommunicatorConfig settings = configOf(config, 0);
    if (settings.timeout.count() == 0) settings.timeout = comm->communicator->timeout();
    auto made = comm->communicator->split(color, key, std::move(settings));
    if (!made.ok()) return resultOf(made.status());
    if (*made != nullptr) *newcomm = new isthmusComm{std::move(*made)};
    return isthmusSuccess;
}

isthmusResult_t isthmusCommFinalize(isthmusComm_t comm) {
    if (Status status = checkHandle(comm); !status.ok()) return resultOf(status);
    return resultOf(comm->communicator->flush());
}

isthmusResult_t isthmusCommDestroy(isthmusComm_t comm) {
    if (comm == nullptr) return isthmusSuccess;
    const Status status = comm->communicator != nullptr ? comm->communicator->close() : Status();
    delete comm;
    return resultOf(status);
}

isthmusResult_t isthmusCommAbort(isthmusComm_t comm) {
    return isthmusCommAbortWithReason(comm, nullptr);
}

isthmusResult_t isthmusCommAbortWithReason(isthmusComm_t comm, const char* reason) {
    if (Status status = checkHandle(comm); !status.ok()) return resultOf(status);
    Communicator& communicator = *comm->communicator;
    std::string why = "\"" + communicator.name() + "\" was aborted by rank " +
                      std::to_string(communicator.rank());
    if (reason != nullptr && *reason != '\0') why += ": " + std::string(reason);
    communicator.abort(Status::aborted(std::move(why)));
    return isthmusSuccess;
}

isthmusResult_t isthmusCommGetAsyncError(isthmusComm_t comm, isthmusResult_t* asyncError) {
    if (Status status = checkHandle(comm, asyncError); !status.ok()) return resultOf(status);
    *asyncError = resultOf(comm->communicator->failure());
    return isthmusSuccess;
}

isthmusResult_t isthmusCommCount(isthmusComm_t comm, int* count) {
    if (Status status = checkHandle(comm, count); !status.ok()) return resultOf(status);
    *count = comm->communicator->ranks();
    return isthmusSuccess;
}

isthmusResult_t isthmusCommUserRank(isthmusComm_t comm, int* rank) {
    if (Status status = checkHandle(comm, rank); !status.ok()) return resultOf(status);
    *rank = comm->communicator->rank();
    return isthmusSuccess;
}

isthmusResult_t isthmusCommNodes(isthmusComm_t comm, int* nodes) {
    if (Status status = checkHandle(comm, nodes); !status.ok()) return resultOf(status);
    if (Status status = comm->communicator->connect(); !status.ok()) return resultOf(status);
    const Layout& layout = comm->communicator->layout();
    for (int rank = 0; rank < comm->communicator->ranks(); ++rank)
        nodes[rank] = layout.nodeOf(rank);
    return isthmusSuccess;
}

isthmusResult_t isthmusWireCounters(isthmusComm_t comm, isthmusWireCounters_t* counters) {
    if (Status status = checkHandle(comm, counters); !status.ok()) return resultOf(status);
    if (Status status = checkSize(counters->size, "isthmusWireCounters_t"); !status.ok())
        return resultOf(status);
    const WireCounters now = comm->communicator->wireCounters();
    const isthmusWireCounters_t all{counters->size, now.sentPayload, now.receivedPayload,
                                    now.sentTotal, now.receivedTotal};
    std::memcpy(counters, &all, std::min(counters->size, sizeof(all)));
    return isthmusSuccess;
}

isthmusResult_t isthmusCardCounters(isthmusComm_t comm, isthmusCardCounters_t* cards, int* count) {
    if (Status status = checkHandle(comm, count); !status.ok()) return resultOf(status);
    if (*count < 0 || (*count > 0 && cards == nullptr))
        return resultOf(Status::invalidArgument("no room for the counters of cards"));
    const std::vector<CardCounters> all = comm->communicator->cardCounters();
    const std::size_t shown = std::min(all.size(), static_cast<std::size_t>(*count));
    for (std::size_t at = 0; at < shown; ++at) {
        cards[at] = {{}, all[at].sent, all[at].received};
        all[at].name.copy(cards[at].name, sizeof(cards[at].name) - 1);
    }
    *count = static_cast<int>(all.size());
    return isthmusSuccess;
}

isthmusResult_t isthmusEventFd(isthmusComm_t comm, int* fd) {
    if (Status status = checkHandle(comm, fd); !status.ok()) return resultOf(status);
    const auto descriptor = comm->communicator->eventDescriptor();
    if (!descriptor.ok()) return resultOf(descriptor.status());
    *fd = *descriptor;
    return isthmusSuccess;
}

isthmusResult_t isthmusRedOpCreatePreMulSum(isthmusRedOp_t* op, void* scalar,
                                            isthmusDataType_t datatype,
                                            isthmusScalarResidence_t residence,
                                            isthmusComm_t comm) {
    if (Status status = checkHandle(comm, op); !status.ok()) return resultOf(status);
    if (scalar == nullptr) return resultOf(Status::invalidArgument("the scalar is null"));
    const auto type = typeOf(datatype);
    if (!type.ok()) return resultOf(type.status());
    if (residence != isthmusScalarHostImmediate) {
        return resultOf(Status::unsupported(
            "a scalar that is read while the call runs; isthmusScalarHostImmediate is served"));
    }
    const auto sum = premulSumOf(*type, scalar);
    if (!sum.ok()) return resultOf(sum.status());
    *op = static_cast<isthmusRedOp_t>(comm->operations.add(*sum));
    return isthmusSuccess;
}

isthmusResult_t isthmusRedOpCreate(isthmusRedOp_t* op, const char* name, isthmusReduction function,
                                   void* context, int commutative, isthmusComm_t comm) {
    if (Status status = checkHandle(comm, op); !status.ok()) return resultOf(status);
    if (function == nullptr || name == nullptr)
        return resultOf(Status::invalidArgument("the function or its name is null"));
    auto made = std::make_shared<UserReduction>();
    made->name = name;
    made->isCommutative = commutative != 0;
    made->combine = [function, context](const void* in, void* inOut, std::size_t elements,
                                        DataType type) {
        function(in, inOut, elements, static_cast<isthmusDataType_t>(type), context);
    };
    *op = static_cast<isthmusRedOp_t>(comm->operations.add(std::move(made)));
    return isthmusSuccess;
}

isthmusResult_t isthmusRedOpDestroy(isthmusRedOp_t op, isthmusComm_t comm) {
    if (Status status = checkHandle(comm); !status.ok()) return resultOf(status);
    return resultOf(comm->operations.remove(static_cast<int>(op)));
}
