#include "comm/base/descriptors.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "comm/base/log.hpp"

namespace isthmus {

namespace {

// Long against a look at a listener, short against what a caller waits: its owner is not kept busy
// by a listener that it cannot serve.
constexpr std::chrono::milliseconds kPauseWithoutReserve{1};

UniqueFd openSpare() {
    return UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

}  // namespace

std::string causeOf(int error) {
    std::string text = std::strerror(error);
    rlimit limit{};
    if (error == EMFILE && ::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        text += ": this process may have " + std::to_string(limit.rlim_cur) +
                " (ulimit -n raises the limit)";
    }
    return text;
}

void warnOutOfDescriptors(std::string_view what) {
    static std::atomic<bool> hasWarned{false};
    // Relaxed: nothing else depends on it.
    if (hasWarned.exchange(true, std::memory_order_relaxed)) return;
    log(LogLevel::kWarning, std::string(what) + ": " + causeOf(EMFILE));
}

SpareDescriptor::SpareDescriptor() : fd_(openSpare()) {}

bool SpareDescriptor::turnAway(int listener, int error) {
    if (error != EMFILE && error != ENFILE) return false;
    warnOutOfDescriptors("a connection cannot be accepted");
    refill();
    const bool wasReserved = fd_.isOpen();
    fd_.reset();
    UniqueFd caller(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    const bool wasThere = caller.isOpen();
    caller.reset();
    refill();
    if (!wasReserved && !wasThere) std::this_thread::sleep_for(kPauseWithoutReserve);
    return wasThere;
}

void SpareDescriptor::refill() {
    if (!fd_.isOpen()) fd_ = openSpare();
}

}  // namespace isthmus
