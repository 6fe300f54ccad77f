#include "comm/base/sleep_set.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "comm/base/assert.hpp"

namespace isthmus {

namespace {
void control(int epoll, int operation, int fd, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.fd = fd;
    ::epoll_ctl(epoll, operation, fd, &event);
}
}  // namespace

SleepSet::SleepSet()
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)), event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    ISTHMUS_ASSERT(epoll_.isOpen() && event_.isOpen());
    add(event_.get());
}

void SleepSet::add(int fd) {
    control(epoll_.get(), EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLRDHUP);
}

void SleepSet::remove(int fd) {
    control(epoll_.get(), EPOLL_CTL_DEL, fd, 0);
}

void SleepSet::wantWrite(int fd, bool wanted) {
    control(epoll_.get(), EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLRDHUP | (wanted ? EPOLLOUT : 0U));
}

void SleepSet::wake() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(event_.get(), &one, sizeof(one));
}

bool SleepSet::wait(std::chrono::nanoseconds limit) {
    std::array<epoll_event, 8> events;
    // Whole milliseconds, rounded up: epoll_pwait2(2) needs a newer libc than we promise.
    const auto limitMs =
        std::chrono::ceil<std::chrono::milliseconds>(std::max(limit, limit.zero()));
    const int timeout = static_cast<int>(std::min<std::int64_t>(limitMs.count(), 60'000));
    const int ready =
        ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout);
    for (int i = 0; i < ready; ++i) {
        if (events[i].data.fd != event_.get()) continue;
        std::uint64_t count = 0;
        [[maybe_unused]] const auto taken = ::read(event_.get(), &count, sizeof(count));
    }
    return ready > 0;
}

}  // namespace isthmus
