#include "torch_plugin/csrc/interrupts.hpp"

#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace isthmus::glue {
namespace {

struct Object;  // PyObject

/// What is asked of Python, by name when it is there: this file belongs to no version of it. All of
/// these are in its stable interface (docs.python.org/3/c-api/stable.html).
struct Python {
    template <typename Function>
    static Function* find(const char* name) {
        return reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
    }

    int (*isInitialized)() = find<int()>("Py_IsInitialized");
    int (*ensure)() = find<int()>("PyGILState_Ensure");
    void (*release)(int) = find<void(int)>("PyGILState_Release");
    int (*checkSignals)() = find<int()>("PyErr_CheckSignals");
    Object* (*occurred)() = find<Object*()>("PyErr_Occurred");
    void (*clear)() = find<void()>("PyErr_Clear");
    int (*raiseSoon)(unsigned long,
                     Object*) = find<int(unsigned long, Object*)>("PyThreadState_SetAsyncExc");
    unsigned long (*thread)() = find<unsigned long()>("PyThread_get_thread_ident");

    bool isThere() const {
        return isInitialized != nullptr && ensure != nullptr && release != nullptr &&
               checkSignals != nullptr && occurred != nullptr && clear != nullptr &&
               raiseSoon != nullptr && thread != nullptr;
    }
};

const Python& python() {
    static const Python found;
    return found;
}

thread_local bool lastWaitWasInterrupted = false;

}  // namespace

bool handlesSignals() {
    // Once for each thread: what it is does not change, and every call asks.
    static thread_local const bool isMain =
        ::syscall(SYS_gettid) == ::getpid() && python().isThere();
    return isMain && python().isInitialized() != 0;
}

// The handler's exception cannot go through the C++ between here and Python as itself. So it is
// raised anew, by its type, as soon as the call that led here has returned.
bool isInterrupted() {
    const Python& asked = python();
    const int state = asked.ensure();
    const bool hasRaised = asked.checkSignals() != 0;
    if (hasRaised) {
        asked.raiseSoon(asked.thread(), asked.occurred());
        asked.clear();
    }
    asked.release(state);
    return hasRaised;
}

Patience::Patience(std::chrono::milliseconds timeout)
    : isWatchful_(handlesSignals()),
      isBounded_(timeout.count() > 0),
      until_(isBounded_ ? Clock::now() + timeout : Clock::time_point::max()) {
    lastWaitWasInterrupted = false;
}

std::int64_t Patience::slice() const {
    constexpr int kOften = 3;
    const std::int64_t between = (looks_ < kOften ? kBetweenSignals : kBetweenSignalsLater).count();
    if (!isBounded_) return isWatchful_ ? between : -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until_ - Clock::now());
    const auto most = std::max<std::int64_t>(left.count(), 0);
    return isWatchful_ ? std::min(most, between) : most;
}

bool Patience::isOver() const {
    return isBounded_ && Clock::now() >= until_;
}

bool Patience::isInterrupted() {
    ++looks_;
    lastWaitWasInterrupted = isWatchful_ && glue::isInterrupted();
    return lastWaitWasInterrupted;
}

bool Patience::wasInterrupted() {
    return lastWaitWasInterrupted;
}

}  // namespace isthmus::glue
