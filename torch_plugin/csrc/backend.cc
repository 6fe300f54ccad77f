#include "torch_plugin/csrc/backend.hpp"

#include <future>
#include <utility>

#include "torch_plugin/csrc/executor.hpp"
#include "torch_plugin/csrc/interrupts.hpp"
#include "torch_plugin/csrc/shared_memory.hpp"

namespace isthmus::glue {

using std::chrono::milliseconds;

Backend::Backend(const c10::intrusive_ptr<c10d::Store>& store, int rank, int ranks,
                 GroupSettings settings)
    : c10d::Backend(rank, ranks),
      store_(store),
      settings_(std::move(settings)),
      timeoutMs_(settings_.timeout.count()),
      communicator_(Communicator::make(store, rank, ranks, settings_)) {
    init();
}

c10::intrusive_ptr<c10d::Backend::Options> Backend::getBackendOptions() {
    // A fresh one each time: torch changes what it gets before it makes a child group.
    auto options = c10::make_intrusive<Options>(getBackendName(), groupTimeout());
    options->group_name = settings_.name;
    options->global_ranks_in_group.assign(settings_.globalRanks.begin(),
                                          settings_.globalRanks.end());
    return options;
}

milliseconds Backend::groupTimeout() const {
    return milliseconds(timeoutMs_.load());
}

void Backend::setTimeout(milliseconds timeout) {
    timeoutMs_.store(timeout.count());
}

milliseconds Backend::limitOf(milliseconds asked) const {
    return asked.count() > 0 ? asked : groupTimeout();
}

void Backend::startCoalescing() {
    TORCH_CHECK(!isCoalescing_.exchange(true),
                "isthmus: coalescing began twice without an end in between");
    ++batches_;
}

Backend::WorkPtr Backend::endCoalescing() {
    TORCH_CHECK(isCoalescing_.exchange(false), "isthmus: coalescing ended without a start");
    std::vector<WorkPtr> parts;
    {
        const std::lock_guard lock(coalescedMutex_);
        parts.swap(coalesced_);
    }
    return c10::make_intrusive<BatchWork>(rank_, c10d::OpType::COALESCED, std::move(parts));
}

c10d::ErrorType Backend::getError() {
    isthmusResult_t result = communicator_->health().result;
    if (const auto lane = laneIfAny(); lane && result == isthmusSuccess) {
        result = lane->communicator()->health().result;
    }
    switch (result) {
    case isthmusSuccess:
        return c10d::ErrorType::SUCCESS;
    case isthmusTimeout:
        return c10d::ErrorType::TIMEOUT;
    case isthmusPeerLost:
    case isthmusMismatch:
        return c10d::ErrorType::REMOTE_ERROR;
    default:
        return c10d::ErrorType::COMM_ERROR;
    }
}

void Backend::abort() {
    communicator_->abort();
    if (const auto lane = laneIfAny()) lane->communicator()->abort();
}

Outcome Backend::close() {
    const auto lane = laneIfAny();
    const Outcome ofLane = lane ? lane->close() : Outcome{};
    const Outcome closed = communicator_->close();
    return closed.ok() ? ofLane : closed;
}

void Backend::shutdown() {
    if (isForkedChild()) return;
    if (!handlesSignals()) return throwUnlessOk(close(), "destroy_process_group");
    // What waits for others ends when the user says so: one thread waits, this one listens.
    std::future<Outcome> closing = std::async(std::launch::async, [this] { return close(); });
    Patience patience(kNoTimeout);
    while (closing.wait_for(kBetweenSignals) != std::future_status::ready) {
        if (!patience.isInterrupted()) continue;
        abort();
        closing.wait();
        return;  // what Python raises now says why
    }
    throwUnlessOk(closing.get(), "destroy_process_group");
}

bool Backend::supportsTensorAlloc(c10::DeviceIndex deviceIndex) {
    return deviceIndex < 0;  // host memory is the device without a number
}

at::Tensor Backend::allocateTensor(long elements, at::TensorOptions options) {
    return sharedTensor(elements, options);
}

std::shared_ptr<c10::Allocator> Backend::getMemAllocator() {
    return sharedAllocator();
}

Call Backend::begin(const char* title, c10d::OpType type, milliseconds timeout, bool isAsync) {
    Call call;
    call.title = title;
    call.type = type;
    call.timeout = limitOf(timeout);
    call.runsInCaller = !isAsync && !isCoalescing_.load();
    call.isDeterministic = settings_.isDeterministic;
    call.roundsOnce = settings_.roundsOnce;
    return call;
}

Backend::WorkPtr Backend::issue(Call call) {
    if (call.staging) {
        const Tensors written = call.writeBack ? call.outputs : Tensors{};
        const std::uint64_t batch = isCoalescing_.load() ? batches_.load() : 0;
        call.staging->follow(tensorOrder_.add(call.staging, written, batch), call.timeout);
        call.staging->enqueueLoads(sideStreams_.of(call.staging->device()));
    }
    if (!c10d::isP2POp(call.type)) call.sequence = sequence_.fetch_add(1) + 1;
    return issued(Work::issue(rank_, std::move(call), communicator_));
}

Backend::WorkPtr Backend::issueOnLane(Call call) {
    call.sequence = sequence_.fetch_add(1) + 1;
    return issued(Work::issueOn(*lane(), rank_, std::move(call)));
}

Backend::WorkPtr Backend::issued(WorkPtr work) {
    if (isCoalescing_.load()) {
        const std::lock_guard lock(coalescedMutex_);
        coalesced_.push_back(work);
    }
    return work;
}

std::shared_ptr<Lane> Backend::lane() {
    const std::lock_guard lock(laneMutex_);
    throwUnlessOk(communicator_->health(), "all_reduce");
    if (!lane_) lane_ = Lane::make(store_, rank_, size_, settings_);
    return lane_;
}

std::shared_ptr<Lane> Backend::laneIfAny() const {
    const std::lock_guard lock(laneMutex_);
    return lane_;
}

Backend::WorkPtr Backend::batch(c10d::OpType type, std::vector<WorkPtr> parts) {
    return c10::make_intrusive<BatchWork>(rank_, type, std::move(parts));
}

void Backend::checkRoot(std::int64_t root, const char* operation) const {
    TORCH_CHECK_VALUE(root >= 0 && root < size_, "isthmus: ", operation, ": root ", root,
                      " is not a rank of this group of ", size_);
}

int Backend::globalRank(int rank) const {
    return settings_.globalRanks.empty() ? rank
                                         : settings_.globalRanks[static_cast<std::size_t>(rank)];
}

}  // namespace isthmus::glue
