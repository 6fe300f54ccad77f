#include "python/csrc/communicator.hpp"

#include <algorithm>
#include <cmath>
#include <thread>

#include "python/csrc/errors.hpp"

namespace isthmus::python {

namespace {

// What a program's end may cost when calls are still in flight; isthmus.torch gives them as much.
constexpr Milliseconds kExitGrace{1000};
// After an abort the library has the buffers back in a moment.
constexpr Milliseconds kAbortGrace{5000};

/// Guarded by Python's lock. Never destroyed: communicators may be later than static objects.
std::vector<Communicator*>& all() {
    static auto* const list = new std::vector<Communicator*>();
    return *list;
}

}  // namespace

std::int64_t millisecondsOf(std::optional<double> seconds) {
    constexpr double kLongest = 1e12;
    if (!seconds) return 0;
    if (std::isnan(*seconds) || *seconds < 0)
        refuse("a timeout is a number of seconds, not below 0");
    return static_cast<std::int64_t>(std::max(1.0, std::ceil(std::min(*seconds * 1e3, kLongest))));
}

Communicator::Communicator(isthmusComm_t comm) : comm_(comm) {
    isthmusCommUserRank(comm_, &rank_);
    isthmusCommCount(comm_, &ranks_);
    all().push_back(this);
}

Communicator::~Communicator() {
    std::erase(all(), this);
    leave(kExitGrace);
}

isthmusComm_t Communicator::handle() const {
    if (comm_ == nullptr) refuse("the communicator is closed");
    return comm_;
}

std::shared_ptr<Pending> Communicator::start(const Wishes& wishes, std::vector<Array> arrays,
                                             const StartCall& begin) {
    handle();
    forgetDone();
    isthmusCallOptions_t options = ISTHMUS_CALL_OPTIONS_INITIALIZER;
    options.timeout_ms = millisecondsOf(wishes.timeout);
    options.priority = wishes.priority;
    options.name = wishes.name ? wishes.name->c_str() : nullptr;
    options.algorithm = wishes.algorithm ? wishes.algorithm->c_str() : nullptr;
    options.persistent = wishes.isPersistent ? 1 : 0;
    options.deterministic = wishes.isDeterministic ? 1 : 0;
    options.oneRounding = wishes.roundsOnce ? 1 : 0;
    options.wait_ms = wishes.wait && !wishes.isPersistent ? kBetweenSignals.count() : 0;
    auto pending = std::make_shared<Pending>(std::move(arrays));
    // A request that is on its way must be waited for by whoever closes.
    use([&](isthmusComm_t comm) {
        const isthmusResult_t result = begin(comm, &options, pending->request(), pending->source());
        const bool isRefused = result == isthmusInvalidArgument;
        if (options.wait_ms == 0 || *pending->request() != nullptr || isRefused) return result;
        pending->ended(result);
        return isthmusSuccess;
    });
    pending->begun(wishes.isPersistent);
    if (!pending->isDone() || wishes.isPersistent) pending_.push_back(pending);
    return pending;
}

void Communicator::use(const std::function<isthmusResult_t(isthmusComm_t)>& call) {
    const isthmusComm_t comm = handle();
    ++starting_;
    isthmusResult_t result = isthmusSuccess;
    std::string text;
    {
        const nb::gil_scoped_release released;
        result = call(comm);
        if (result != isthmusSuccess) text = isthmusGetLastError(nullptr);
    }
    --starting_;
    if (result != isthmusSuccess) raise(result, text);
}

void Communicator::forgetDone() {
    // Those that nobody holds any more are asked; the others are asked by whoever holds them.
    std::erase_if(pending_, [](const std::shared_ptr<Pending>& each) {
        if (each->isDone()) return !each->isPersistent() || each.use_count() == 1;
        return each.use_count() == 1 && each->settle(Milliseconds(0));
    });
}

isthmusResult_t Communicator::destroy() {
    pending_.clear();
    const isthmusComm_t comm = std::exchange(comm_, nullptr);
    const nb::gil_scoped_release released;
    return isthmusCommDestroy(comm);
}

void Communicator::close() {
    if (comm_ == nullptr) return;
    while (starting_ > 0) {
        {
            const nb::gil_scoped_release released;
            std::this_thread::sleep_for(Milliseconds(1));
        }
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
    const auto inFlight = pending_;
    for (const auto& each : inFlight) each->wait(std::nullopt);
    if (comm_ == nullptr) return;  // another thread closed it meanwhile
    checkReductions();
    check(destroy());
}

void Communicator::abort(const std::optional<std::string>& reason) {
    use([&](isthmusComm_t comm) {
        return isthmusCommAbortWithReason(comm, reason ? reason->c_str() : nullptr);
    });
}

void Communicator::leave(Milliseconds grace) noexcept {
    if (comm_ == nullptr) return;
    const auto inFlight = pending_;
    const auto settleAll = [&](Milliseconds limit) {
        bool areDone = starting_ == 0;
        for (const auto& each : inFlight) areDone = each->settle(limit) && areDone;
        return areDone;
    };
    if (!settleAll(grace)) {
        {
            const nb::gil_scoped_release released;
            isthmusCommAbort(comm_);
        }
        // What still is not over keeps its memory, and the communicator, until the process ends.
        if (!settleAll(kAbortGrace)) {
            comm_ = nullptr;
            using Kept = std::remove_const_t<decltype(inFlight)>;
            static_cast<void>(std::make_unique<Kept>(inFlight).release());
            static_cast<void>(std::exchange(reductions_, std::make_unique<Reductions>()).release());
            return;
        }
    }
    if (comm_ != nullptr) destroy();
}

void leaveAll() {
    const auto open = all();
    for (Communicator* each : open) {
        if (std::find(all().begin(), all().end(), each) != all().end()) each->leave(kExitGrace);
    }
}

}  // namespace isthmus::python
