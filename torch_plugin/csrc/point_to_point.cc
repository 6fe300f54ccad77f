#include <ATen/DeviceAccelerator.h>

#include <chrono>
#include <functional>
#include <string>
#include <utility>

#include "torch_plugin/csrc/backend.hpp"
#include "torch_plugin/csrc/interrupts.hpp"
#include "torch_plugin/csrc/store_adapter.hpp"

namespace isthmus::glue {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

struct Interrupted {};

void checkPeer(int peer, int ranks, const char* operation) {
    TORCH_CHECK_VALUE(peer >= 0 && peer < ranks, "isthmus: ", operation, ": rank ", peer,
                      " is not in this group of ", ranks);
}

std::string listOf(const std::vector<int>& ranks) {
    std::string text;
    for (const int rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
    return text;
}

}  // namespace

Backend::WorkPtr Backend::send(Tensors& tensors, int peer, int tag) {
    Call call = begin("isthmus:send", c10d::OpType::SEND, c10d::kUnsetTimeout, true);
    TORCH_CHECK(tensors.size() == 1, "isthmus: send takes one tensor, got ", tensors.size());
    checkPeer(peer, size_, call.operation());
    const DenseView from(tensors[0], DenseView::Use::kRead, call);
    const Elements how = movedAs(tensors[0].scalar_type());
    call.inputs = tensors;
    call.start = [from, how, peer, tag, count = how.of(tensors[0].numel())](
                     isthmusComm_t comm, const isthmusCallOptions_t* limits,
                     isthmusRequest_t* request) {
        return isthmusSend(from.data(), count, how.type, peer, tag, comm, limits, request);
    };
    return issue(std::move(call));
}

Backend::WorkPtr Backend::receive(const char* title, const at::Tensor& tensor, int peer, int tag) {
    const bool isFromAny = peer == ISTHMUS_ANY_SOURCE;
    Call call = begin(title, isFromAny ? c10d::OpType::RECVANYSOURCE : c10d::OpType::RECV,
                      c10d::kUnsetTimeout, true);
    if (!isFromAny) checkPeer(peer, size_, call.operation());
    const DenseView to(tensor, DenseView::Use::kWrite, call);
    const Elements how = movedAs(tensor.scalar_type());
    call.inputs = call.outputs = {tensor};  // the profiler shows inputs only
    call.source = std::make_shared<int>(peer);
    call.start = [to, how, peer, tag, source = call.source, count = how.of(tensor.numel())](
                     isthmusComm_t comm, const isthmusCallOptions_t* limits,
                     isthmusRequest_t* request) {
        return isthmusRecv(to.data(), count, how.type, peer, tag, source.get(), comm, limits,
                           request);
    };
    if (to.isCopy()) call.writeBack = [to] { to.writeBack(); };
    return issue(std::move(call));
}

Backend::WorkPtr Backend::recv(Tensors& tensors, int peer, int tag) {
    TORCH_CHECK(tensors.size() == 1, "isthmus: recv takes one tensor, got ", tensors.size());
    TORCH_CHECK_VALUE(peer >= 0, "isthmus: recv: rank ", peer, " is not in this group of ", size_);
    return receive("isthmus:recv", tensors[0], peer, tag);
}

Backend::WorkPtr Backend::recvAnysource(Tensors& tensors, int tag) {
    TORCH_CHECK(tensors.size() == 1, "isthmus: recv takes one tensor, got ", tensors.size());
    return receive("isthmus:recvAnySource", tensors[0], ISTHMUS_ANY_SOURCE, tag);
}

std::optional<c10::Device> Backend::deviceOf(const c10d::BarrierOptions& options) const {
    // On the way through torch's dispatcher only the numbers are left of what the caller chose.
    std::optional<c10::Device> device = options.device;
    if (const auto type = at::getAccelerator(); type && !options.device_ids.empty()) {
        device = c10::Device(*type, static_cast<c10::DeviceIndex>(options.device_ids.front()));
    }
    if (!device) device = getBoundDeviceId();
    if (!device) device = sideStreams_.lastUsed();
    return device && device->is_cpu() ? std::nullopt : device;
}

Backend::WorkPtr Backend::barrier(const c10d::BarrierOptions& options) {
    Call call = begin("isthmus:barrier", c10d::OpType::BARRIER, options);
    if (const auto device = deviceOf(options)) {
        call.admitDevice(*device);
        call.staging->waitForCaller();
    }
    call.start = [](isthmusComm_t comm, const isthmusCallOptions_t* limits,
                    isthmusRequest_t* request) { return isthmusBarrier(comm, limits, request); };
    return issue(std::move(call));
}

void Backend::monitoredBarrier(const c10d::BarrierOptions& options, bool waitForAll) {
    try {
        meetOverStore(options, waitForAll);
    } catch (const Interrupted&) {
        // Python raises what the handler did as soon as the caller is back there.
    }
}

void Backend::meetOverStore(const c10d::BarrierOptions& options, bool waitForAll) {
    // Over the store and not over our own wires: it exists to find out who is stuck, and must still
    // tell when the group itself hangs. The phrases are the ones that torch's users search for.
    const auto began = Clock::now();
    const milliseconds limit =
        options.timeout == milliseconds(0) ? options.timeout : limitOf(options.timeout);
    const std::string prefix = "isthmus/monitored/" + std::to_string(monitoredBarriers_++) + "/";
    const auto keyOf = [&](int rank) { return prefix + std::to_string(rank); };
    const std::function<void()> listen = [patience = Patience(kNoTimeout)]() mutable {
        if (patience.isInterrupted()) throw Interrupted();
    };
    if (rank_ != 0) {
        store_->set(keyOf(rank_), std::string("here"));
        // Rank 0 may need its whole limit before it can name who is missing.
        const auto until = began + limit + limit / 2;
        const bool answered = waitInStore(*store_, prefix + "verdict", until, nullptr, listen);
        const bool passed = answered && store_->get_to_str(prefix + "verdict") == "all";
        TORCH_CHECK_WITH(DistBackendError, passed, "Rank ", globalRank(rank_),
                         " successfully reached monitoredBarrier, but received errors while "
                         "waiting for send/recv from rank 0. Please check rank 0 logs for faulty "
                         "rank.");
        return;
    }
    TORCH_CHECK_WITH(DistBackendError, limit.count() > 0, "[Rank ", globalRank(0), "]: Rank ",
                     globalRank(0), " timed out in monitoredBarrier after ", limit.count(), " ms");
    std::vector<int> missing;
    for (int rank = 1; rank < size_; ++rank) {
        if (waitInStore(*store_, keyOf(rank), began + limit, nullptr, listen)) continue;
        missing.push_back(globalRank(rank));
        if (!waitForAll) break;
    }
    store_->set(prefix + "verdict", std::string(missing.empty() ? "all" : "missing"));
    TORCH_CHECK_WITH(DistBackendError, missing.empty(), "[Rank ", globalRank(0),
                     "]: ", missing.size() > 1 ? "Ranks " : "Rank ", listOf(missing),
                     " failed to pass monitoredBarrier in ", limit.count(), " ms");
}

}  // namespace isthmus::glue
