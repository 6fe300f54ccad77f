#include "comm/capi/asked.hpp"

namespace isthmus {

namespace {

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
Status takeUp(AskedCall& call, const MadeOperations::Entry& made) {
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

}  // namespace

Status checkHandle(isthmusComm_t comm) {
    if (comm == nullptr || comm->communicator == nullptr) {
        return Status::invalidArgument("the communicator is null");
    }
    return {};
}

isthmusResult_t refused(const Status& status) {
    noteInGroup(status);
    return resultOf(status);
}

AskedCall AskedCall::of(Collective collective, const void* send, void* receive, std::size_t count,
                        isthmusDataType_t type) {
    AskedCall call;
    call.request.collective = collective;
    call.request.input = static_cast<const std::byte*>(send);
    call.request.output = static_cast<std::byte*>(receive);
    call.request.counts.uniform = count;
    call.type = type;
    return call;
}

Status AskedCall::understand(isthmusComm_t comm) {
    const std::string_view name = nameOf(request.collective);
    const auto known = typeOf(type);
    if (!known.ok()) return known.status().within(name);
    request.type = *known;
    if (Status status = checkPlaces(displacements, request.type); !status.ok())
        return status.within(name);
    if (const auto made = comm->operations.find(op)) return takeUp(*this, *made);
    if (op < 0 || op >= kReduceOps) {
        return Status::invalidArgument(std::string(name) + ": unknown reduction " +
                                       std::to_string(op));
    }
    request.op = static_cast<ReduceOp>(op);
    return {};
}

Status AskedCall::prepare(Communicator& communicator, const CallOptions& options) {
    return communicator.prepare(request, options);
}

std::shared_ptr<Work> AskedCall::start(Communicator& communicator, const CallOptions& options) && {
    return factor.has_value()
               ? callPremultiplied(communicator, std::move(request), options, *factor)
               : callWithDisplacements(communicator, std::move(request), options, displacements);
}

}  // namespace isthmus
