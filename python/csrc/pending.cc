#include "python/csrc/pending.hpp"

#include <algorithm>
#include <thread>

#include "python/csrc/errors.hpp"

namespace isthmus::python {

namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

Pending::~Pending() {
    isthmusRequestFree(&request_);
}

void Pending::ended(isthmusResult_t result) {
    hasEnded_ = true;
    result_ = result;
    if (result != isthmusSuccess) text_ = isthmusGetLastError(nullptr);
}

void Pending::begun(bool isPersistent) {
    isPersistent_ = isPersistent;
    if (isPersistent) hasEnded_ = true;  // not started yet
    isDone_ = hasEnded_;
    if (isDone_ && !isPersistent) arrays_.clear();
}

void Pending::checkOutcome() const {
    if (isDone_ && result_ != isthmusSuccess) raise(result_, text_);
}

Pending::Seen Pending::ask(Milliseconds slice) {
    if (wanted_ > 0) {  // the lock is not fair: two that wait could hand it to each other for ever
        std::this_thread::sleep_for(std::min(slice, Milliseconds(1)));
        return Seen::kNotYet;
    }
    const std::unique_lock lock(taken_, slice);
    if (!lock.owns_lock()) return Seen::kNotYet;
    if (hasEnded_) return Seen::kDone;
    // Of one: unlike isthmusWait it says whether the call or only the waiting ended.
    std::size_t index = ISTHMUS_UNDEFINED;
    const isthmusResult_t result = isthmusWaitAny(1, &request_, &index, slice.count());
    if (index == ISTHMUS_UNDEFINED && result == isthmusTimeout) return Seen::kNotYet;
    result_ = result;
    text_ = result == isthmusSuccess ? "" : isthmusGetLastError(nullptr);
    // In a forked child no call is done, ever.
    if (index == ISTHMUS_UNDEFINED) return Seen::kRefused;
    hasEnded_ = true;
    return Seen::kDone;
}

Pending::Seen Pending::look(Milliseconds slice) {
    if (isDone_) return Seen::kDone;
    Seen seen = Seen::kNotYet;
    {
        const nb::gil_scoped_release released;
        seen = ask(slice);
    }
    if (seen == Seen::kDone && !isDone_) {
        isDone_ = true;
        if (!isPersistent_) arrays_.clear();
    }
    return seen;
}

std::unique_lock<std::timed_mutex> Pending::take(const char* what) {
    // Whoever waits lets go every kBetweenSignals.
    constexpr int kTurns = 40;
    std::unique_lock lock(taken_, std::defer_lock);
    {
        const nb::gil_scoped_release released;
        ++wanted_;
        static_cast<void>(lock.try_lock_for(kTurns * kBetweenSignals));
        --wanted_;
    }
    if (!lock.owns_lock())
        raise(isthmusTimeout, std::string(what) + ": other threads use the call");
    return lock;
}

bool Pending::wait(std::optional<Milliseconds> limit) {
    const auto until = Clock::now() + limit.value_or(Milliseconds(0));
    for (;;) {
        Milliseconds slice = kBetweenSignals;
        if (limit) {
            const auto left = std::chrono::ceil<Milliseconds>(until - Clock::now());
            slice = std::clamp(left, Milliseconds(0), kBetweenSignals);
        }
        const Seen seen = look(slice);
        if (seen == Seen::kDone) return true;
        if (seen == Seen::kRefused) raise(result_, text_);
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        if (limit && Clock::now() >= until) return false;
    }
}

bool Pending::settle(Milliseconds limit) noexcept {
    const auto until = Clock::now() + limit;
    for (;;) {
        const auto left = std::chrono::ceil<Milliseconds>(until - Clock::now());
        const Seen seen = look(std::clamp(left, Milliseconds(0), kBetweenSignals));
        if (seen != Seen::kNotYet) return seen == Seen::kDone;
        if (Clock::now() >= until) return false;
    }
}

void Pending::start() {
    const auto lock = take("start");
    checkUnlocked([&] { return isthmusStart(request_); });
    hasEnded_ = false;
    isDone_ = false;
    result_ = isthmusSuccess;
}

void Pending::cancel() {
    if (isDone_) refuse("cancel: the call is over");
    const auto lock = take("cancel");
    checkUnlocked([&] { return isthmusCancel(request_); });
}

void Pending::onComplete(isthmusCallback callback, void* context) {
    const auto lock = take("add_done_callback");
    if (hasEnded_) return callback(result_, text_.c_str(), context);
    checkUnlocked([&] { return isthmusOnComplete(request_, callback, context); });
}

}  // namespace isthmus::python
