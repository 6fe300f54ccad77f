#include "torch_plugin/csrc/work.hpp"

#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>
#include <c10/core/StreamGuard.h>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <utility>

namespace isthmus::glue {
namespace {

isthmusCallOptions_t optionsOf(const Call& call) {
    isthmusCallOptions_t options = ISTHMUS_CALL_OPTIONS_INITIALIZER;
    options.timeout_ms = call.timeout.count();
    options.deterministic = call.isDeterministic ? 1 : 0;
    options.oneRounding = call.roundsOnce ? 1 : 0;
    return options;
}

c10::intrusive_ptr<c10::ivalue::Future> makeTensorsFuture(const Staging* staging) {
    std::vector<c10::Device> devices;
    if (staging != nullptr) devices.push_back(staging->device());
    return c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()),
                                                    std::move(devices));
}

c10::intrusive_ptr<c10::ivalue::Future> makeResultFuture() {
    return c10::make_intrusive<c10::ivalue::Future>(c10::IntType::get());
}

c10::IValue resultValue(isthmusResult_t result) {
    const auto value = result == isthmusSuccess   ? c10d::WorkResult::SUCCESS
                       : result == isthmusTimeout ? c10d::WorkResult::TIMEOUT
                                                  : c10d::WorkResult::COMM_ERROR;
    return static_cast<std::int64_t>(value);
}

}  // namespace

Work::Work(int rank, Call call, std::shared_ptr<Communicator> communicator)
    : c10d::Work(rank, call.type, call.title, call.inputs),
      call_(std::move(call)),
      communicator_(std::move(communicator)) {}

Work::~Work() {
    if (request_ != nullptr && !isForkedChild()) isthmusRequestFree(&request_);
}

c10::intrusive_ptr<Work> Work::issue(int rank, Call call,
                                     std::shared_ptr<Communicator> communicator) {
    Meeting& meeting = communicator->meeting();
    Line& line = communicator->line();
    const bool waitsAtOnce = call.runsInCaller;
    const bool blocks =
        call.staging && (waitsAtOnce ? call.staging->isToFollow() : call.staging->isToBeLoaded());
    if (!waitsAtOnce || blocks || !meeting.isOver() || !line.isIdle()) Executor::instance().start();
    auto work = c10::make_intrusive<Work>(rank, std::move(call), std::move(communicator));
    work->communicator_->beganCall();
    if (meeting.take(work) || line.take(work, blocks)) {
        if (waitsAtOnce) work->wait(kNoTimeout);
    } else if (waitsAtOnce) {
        work->runInCaller();
    } else {
        work->startAsync();
    }
    return work;
}

void Work::runBlocking() {
    if (load()) settle(start(nullptr));
}

Outcome Work::start(isthmusRequest_t* request, std::int64_t patience) {
    isthmusCallOptions_t options = optionsOf(call_);
    options.wait_ms = patience;
    return communicator_->with(
        [&](isthmusComm_t handle) { return call_.start(handle, &options, request); });
}

bool Work::load() {
    if (!call_.staging) return true;
    try {
        call_.staging->waitUntilLoaded();
        return true;
    } catch (const c10::Error& error) {
        failLoad(error.what_without_backtrace());
    } catch (const std::exception& error) {
        failLoad(error.what());
    }
    return false;
}

void Work::failLoad(const char* why) {
    // The others have begun this call or will: they are told now, not by their timeouts.
    settle({isthmusInternalError, why});
    communicator_->abort(std::string("the device of a rank failed: ") + why);
}

c10::intrusive_ptr<Work> Work::issueOn(Lane& lane, int rank, Call call) {
    const bool waitsAtOnce = std::exchange(call.runsInCaller, false);
    auto work = c10::make_intrusive<Work>(rank, std::move(call), lane.communicator());
    work->communicator_->beganCall();
    lane.post(work);
    if (waitsAtOnce) work->wait(kNoTimeout);
    return work;
}

void Work::runOnLane(c10::intrusive_ptr<Work> work) noexcept {
    try {
        work->settle(work->start(nullptr));
    } catch (const c10::ValueError& error) {
        work->settle({isthmusInvalidArgument, error.what_without_backtrace()});
    } catch (const c10::Error& error) {
        work->settle({isthmusInternalError, error.what_without_backtrace()});
    } catch (const std::exception& error) {
        work->settle({isthmusInternalError, error.what()});
    }
    Work* const self = work.get();
    Executor::instance().post(std::move(work), self);
}

Work::Begun Work::begin() {
    if (!load()) return Begun::kRefused;
    isthmusRequest_t request = nullptr;
    const Outcome started = start(&request);
    if (!started.ok() || request == nullptr) {
        settle(started);
        return started.ok() ? Begun::kDone : Begun::kRefused;
    }
    return keep(request);
}

Work::Begun Work::keep(isthmusRequest_t request) {
    c10::intrusive_ptr<Work> parked;
    {
        const std::lock_guard lock(callMutex_);
        driver_ = &parked;
    }
    auto reference = c10::intrusive_ptr<Work>::reclaim_copy(this);
    const isthmusResult_t watched =
        isthmusOnComplete(request, &Work::onLibraryDone, reference.get());
    if (watched == isthmusSuccess) {
        static_cast<void>(reference.release());  // onLibraryDone takes it
    } else {
        settle(Outcome::of(isthmusWait(&request, -1)));
    }
    const std::lock_guard lock(callMutex_);
    driver_ = nullptr;
    request_ = request;
    return isSettled_ ? Begun::kDone : Begun::kRunning;
}

void Work::startAsync() {
    const Begun begun = begin();
    if (begun != Begun::kRunning) complete();
    if (begun == Begun::kRefused) rethrow();
}

void Work::beginLater(c10::intrusive_ptr<Work> work) noexcept {
    Work* const self = work.get();
    if (self->begin() != Begun::kRunning) Executor::instance().post(std::move(work), self);
}

void Work::onLibraryDone(isthmusResult_t result, const char* text, void* context) {
    auto work = c10::intrusive_ptr<Work>::reclaim(static_cast<Work*>(context));
    Work* const self = work.get();
    {
        const std::lock_guard lock(self->callMutex_);
        if (!self->isSettled_) {
            self->outcome_ = {result, text == nullptr ? "" : text};
            self->isSettled_ = true;
        }
        if (self->driver_ != nullptr) {
            *self->driver_ = std::move(work);
            return;
        }
    }
    Executor::instance().post(std::move(work), self);
}

void Work::settle(Outcome outcome) {
    const std::lock_guard lock(callMutex_);
    if (isSettled_) return;
    outcome_ = std::move(outcome);
    isSettled_ = true;
}

void Work::complete() {
    isthmusRequest_t request = nullptr;
    {
        const std::lock_guard lock(callMutex_);
        if (std::exchange(isClaimed_, true)) return;
        request = std::exchange(request_, nullptr);
    }
    if (request != nullptr) isthmusRequestFree(&request);
    const std::exception_ptr error = store();
    call_.start = nullptr;
    call_.writeBack = nullptr;
    call_.inputs.clear();
    if (call_.staging) call_.staging->release();
    ended_ = Clock::now();
    communicator_->endedCall();
    finish(error);
    markFutures();
}

std::exception_ptr Work::store() {
    if (!outcome_.ok()) return exceptionOf(outcome_, call_.operation());
    if (!call_.writeBack) return nullptr;
    try {
        if (call_.staging) {
            call_.staging->store(call_.writeBack, call_.outputs);
        } else {
            call_.writeBack();
        }
    } catch (...) {
        return std::current_exception();
    }
    return nullptr;
}

void Work::markFuture(c10::ivalue::Future& future) const {
    if (exception_) {
        future.setError(exception_);
        return;
    }
    // A future of a device notes how far the current stream is when it is marked.
    c10::OptionalStreamGuard results;
    if (call_.staging) results.reset_stream(call_.staging->resultStream());
    future.markCompleted(c10::IValue(call_.outputs));
}

void Work::markFutures() {
    c10::intrusive_ptr<c10::ivalue::Future> future;
    c10::intrusive_ptr<c10::ivalue::Future> futureResult;
    {
        const std::lock_guard lock(callMutex_);
        hasEnded_ = true;
        future = std::exchange(future_, nullptr);
        futureResult = std::exchange(futureResult_, nullptr);
    }
    if (!future && !futureResult) return;
    const Executor::Callback callback;
    if (future) markFuture(*future);
    if (futureResult) futureResult->markCompleted(resultValue(outcome_.result));
}

int Work::sourceRank() const {
    return call_.source ? *call_.source : c10d::Work::sourceRank();
}

std::vector<at::Tensor> Work::result() {
    return call_.outputs;
}

c10::intrusive_ptr<c10::ivalue::Future> Work::getFuture() {
    auto future = makeTensorsFuture(call_.staging.get());
    {
        const std::lock_guard lock(callMutex_);
        if (!hasEnded_) {
            if (!future_) future_ = future;
            return future_;
        }
    }
    markFuture(*future);
    return future;
}

c10::intrusive_ptr<c10::ivalue::Future> Work::getFutureResult() {
    auto future = makeResultFuture();
    {
        const std::lock_guard lock(callMutex_);
        if (!hasEnded_) {
            if (!futureResult_) futureResult_ = future;
            return futureResult_;
        }
    }
    future->markCompleted(resultValue(outcome_.result));
    return future;
}

float Work::getDuration() const {
    const std::lock_guard lock(mutex_);
    TORCH_CHECK(completed_, "isthmus: ", call_.operation(),
                ": the duration is known when it is done");
    return std::chrono::duration<float, std::milli>(ended_ - began_).count();
}

std::uint64_t Work::getSequencenumber() const {
    return call_.sequence;
}

#if ISTHMUS_TORCH_AT_LEAST(2, 15)
std::chrono::milliseconds Work::getTimeout() const {
    return call_.timeout;
}
#endif

}  // namespace isthmus::glue
