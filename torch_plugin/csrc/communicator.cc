#include "torch_plugin/csrc/communicator.hpp"

#include <algorithm>
#include <mutex>
#include <thread>

#include "torch_plugin/csrc/executor.hpp"
#include "torch_plugin/csrc/store_adapter.hpp"

namespace isthmus::glue {
namespace {

using Clock = std::chrono::steady_clock;

/// How long a group that was dropped without destroy_process_group waits for its own calls.
constexpr auto kDropGrace = std::chrono::milliseconds(500);

/// How long a group that is destroyed before its ranks have met waits for them: those that need
/// each other still can if all made the group, and one that was never made elsewhere costs no more.
constexpr auto kMeetingGrace = std::chrono::seconds(5);

struct Registry {
    std::mutex mutex;
    std::vector<std::weak_ptr<Communicator>> live;
};

Registry& registry() {
    static auto* const all = new Registry();  // outlives every exit order
    return *all;
}

void remember(const std::shared_ptr<Communicator>& communicator) {
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    std::erase_if(all.live, [](const auto& entry) { return entry.expired(); });
    all.live.push_back(communicator);
}

}  // namespace

std::shared_ptr<Communicator> Communicator::make(c10::intrusive_ptr<c10d::Store> store, int rank,
                                                 int ranks, const GroupSettings& settings) {
    std::shared_ptr<Communicator> made(new Communicator(settings.timeout));
    const StoreAdapter adapter =
        adaptStore(std::move(store), {rank, ranks, settings.timeout, made->isLeaving_});
    isthmusConfig_t config = ISTHMUS_CONFIG_INITIALIZER;
    config.name = settings.name.c_str();
    config.timeout_ms = settings.timeout.count();
    config.lazy = 1;
    config.globalRanks = settings.globalRanks.empty() ? nullptr : settings.globalRanks.data();
    const Outcome outcome = Outcome::of(isthmusCommInitStore(
        &made->handle_, ranks, rank, &adapter.callbacks, adapter.context, &config));
    throwUnlessOk(outcome, "init_process_group");
    remember(made);
    if (ranks == 1) {
        made->meeting_.skip();
        return made;
    }
    made->meeting_.begin([made, ranks] {
        std::vector<int> nodes(static_cast<std::size_t>(ranks));
        // A failure is kept in the library and told by whatever is called next.
        static_cast<void>(made->with(
            [&](isthmusComm_t handle) { return isthmusCommNodes(handle, nodes.data()); }));
    });
    return made;
}

void Communicator::endMeeting(Clock::time_point deadline) {
    if (meeting_.isOver()) return;
    meeting_.waitUntil(deadline);
    isLeaving_->store(true, std::memory_order_relaxed);  // a flag alone: orders nothing
}

Communicator::~Communicator() {
    closeBy(Clock::now() + kDropGrace);
}

Outcome Communicator::whyGone() const {
    if (isForkedChild()) {
        return {isthmusUnsupported,
                "not usable after fork: this process was forked from one that uses isthmus; start "
                "workers before init_process_group or with the spawn method"};
    }
    if (handle_ == nullptr) return {isthmusAborted, "the process group was destroyed"};
    return {};
}

Outcome Communicator::close() {
    if (isForkedChild()) return {};
    {
        // Not alone: abort() from another thread must be able to end this wait.
        const std::shared_lock lock(handleMutex_);
        if (handle_ == nullptr) return {};
    }
    endMeeting(Clock::now() + std::min<Clock::duration>(timeout_, kMeetingGrace));
    line_.waitUntilIdle(Clock::now() + timeout_);
    Outcome flushed = with([](isthmusComm_t handle) { return isthmusCommFinalize(handle); });
    waitForWorks(Clock::now() + timeout_ + kDropGrace);
    const std::unique_lock lock(handleMutex_);
    if (handle_ != nullptr) isthmusCommDestroy(handle_);
    handle_ = nullptr;
    return flushed;
}

void Communicator::drain() const {
    if (!isForkedChild()) waitForWorks(Clock::now() + timeout_);
}

void Communicator::waitForWorks(Clock::time_point deadline) const {
    // The end of a group is no hot path: a millisecond is below what a person sees.
    while (inFlight_.load() > 0 && Clock::now() < deadline) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

void Communicator::abort(const std::string& reason) {
    if (isForkedChild()) return;
    isLeaving_->store(true, std::memory_order_relaxed);
    const std::shared_lock lock(handleMutex_);
    if (handle_ != nullptr) isthmusCommAbortWithReason(handle_, reason.c_str());
}

void Communicator::closeBy(Clock::time_point deadline) {
    if (isForkedChild()) return;
    endMeeting(deadline);
    waitForWorks(deadline);
    if (inFlight_.load() > 0) abort();
    const std::unique_lock lock(handleMutex_, deadline + kDropGrace);
    if (!lock.owns_lock() || handle_ == nullptr) return;  // a thread is still inside a call
    isthmusCommDestroy(handle_);
    handle_ = nullptr;
}

Outcome Communicator::health() {
    isthmusResult_t cause = isthmusSuccess;
    const Outcome asked =
        with([&](isthmusComm_t handle) { return isthmusCommGetAsyncError(handle, &cause); });
    return asked.ok() ? Outcome::of(cause) : asked;
}

void Communicator::closeAll(std::chrono::milliseconds grace) {
    if (isForkedChild()) return;
    std::vector<std::weak_ptr<Communicator>> live;
    {
        Registry& all = registry();
        const std::lock_guard lock(all.mutex);
        live.swap(all.live);
    }
    const auto deadline = Clock::now() + grace;
    for (const auto& entry : live) {
        if (const auto communicator = entry.lock()) communicator->closeBy(deadline);
    }
}

}  // namespace isthmus::glue
