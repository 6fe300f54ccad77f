// How somebody waits for a Work: by moving the library, or for who does.
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <utility>

#include "torch_plugin/csrc/interrupts.hpp"
#include "torch_plugin/csrc/work.hpp"

namespace isthmus::glue {

// Without a callback, as it is not needed unless somebody interrupts: this path is the hot one.
void Work::runInCaller() {
    if (!handlesSignals()) {
        runBlocking();
    } else if (!runInSlices()) {
        return;  // as if it were done: Python raises before anything else happens there
    }
    complete();
    rethrow();
    if (call_.staging) call_.staging->makeCurrentStreamWait();
}

bool Work::runInSlices() {
    if (!load()) return true;
    isthmusRequest_t request = nullptr;
    Patience patience(kNoTimeout);
    Outcome outcome = start(&request, patience.slice());
    while (request != nullptr) {
        if (patience.isInterrupted()) {
            Executor::instance().start();
            if (keep(request) != Begun::kRunning) complete();
            return false;
        }
        outcome = communicator_->with(
            [&](isthmusComm_t) { return isthmusWait(&request, patience.slice()); });
        if (request != nullptr && outcome.result != isthmusTimeout)
            outcome = Outcome::of(isthmusWait(&request, -1));  // the group is gone: it has ended
    }
    settle(std::move(outcome));
    return true;
}

bool Work::drive(std::int64_t milliseconds) {
    c10::intrusive_ptr<Work> parked;  // dropped here, after the library returned
    isthmusRequest_t request = nullptr;
    {
        const std::lock_guard lock(callMutex_);
        if (isSettled_ || request_ == nullptr || driver_ != nullptr) return false;
        request = std::exchange(request_, nullptr);
        driver_ = &parked;
    }
    // Under with(): the communicator is not freed while somebody waits in it. If it is gone
    // already, the library has settled the work, or is about to.
    Outcome outcome =
        communicator_->with([&](isthmusComm_t) { return isthmusWait(&request, milliseconds); });
    const bool hasSpentIt = request != nullptr && outcome.result == isthmusTimeout;
    const std::lock_guard lock(callMutex_);
    driver_ = nullptr;
    request_ = request;
    if (request == nullptr && !isSettled_) {
        outcome_ = std::move(outcome);
        isSettled_ = true;
    }
    return hasSpentIt;
}

bool Work::waitForEnd(std::int64_t milliseconds) {
    std::unique_lock lock(mutex_);
    const auto hasEnded = [this] { return completed_; };
    if (milliseconds >= 0)
        return cv_.wait_for(lock, std::chrono::milliseconds(milliseconds), hasEnded);
    cv_.wait(lock, hasEnded);  // the library's own deadline ends it
    return true;
}

Work::Slice Work::waitSlice(std::int64_t milliseconds) {
    const bool isSpent = drive(milliseconds);
    bool isSettled = false;
    bool isMine = false;
    {
        const std::lock_guard lock(callMutex_);
        isSettled = isSettled_;
        isMine = isSettled_ && !isClaimed_;
    }
    if (isMine) complete();
    if (isSettled) return waitForEnd(kBetweenSignals.count()) ? Slice::kEnded : Slice::kSettled;
    return !isSpent && waitForEnd(milliseconds) ? Slice::kEnded : Slice::kOpen;
}

bool Work::isCompleted() {
    if (!c10d::Work::isCompleted()) return false;
    return !call_.staging || call_.staging->isStored();
}

void Work::synchronize() {
    if (!call_.staging) return;
    wait(kNoTimeout);
    call_.staging->waitUntilStored();
}

bool Work::wait(std::chrono::milliseconds timeout) {
    if (call_.staging) call_.staging->refuseCapture(call_.operation());
    Patience patience(timeout);
    for (Slice slice; (slice = waitSlice(patience.slice())) != Slice::kEnded;) {
        // Settled: whoever takes it to its end is at it, and the caller was in time.
        TORCH_CHECK_WITH(DistBackendError, slice == Slice::kSettled || !patience.isOver(),
                         "isthmus: ", call_.operation(), ": wait timed out after ", timeout.count(),
                         " ms; the call itself goes on until its own timeout of ",
                         call_.timeout.count(), " ms");
        if (patience.isInterrupted()) return true;  // as if it were done: see runInCaller()
    }
    forgetInRegistry(this);
    rethrow();
    if (call_.staging) call_.staging->makeCurrentStreamWait();
    return true;
}

void forgetInRegistry(c10d::Work* work) {
    if (!c10d::allow_inflight_collective_as_graph_input()) return;
    c10d::unregister_work(c10::intrusive_ptr<c10d::Work>::reclaim_copy(work));
}

void Work::rethrow() const {
    if (const std::exception_ptr error = exception()) std::rethrow_exception(error);
}

}  // namespace isthmus::glue
