#pragma once

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "comm/base/sleep_set.hpp"
#include "comm/base/unique_fd.hpp"

namespace isthmus {

/// What errno says of a call that may be tried again later.
inline bool isPassing(int error) {
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

/// `socket.fd` is `fd` from now on: its news are events of `epoll` with data.ptr = &socket, and
/// wake whoever sleeps. `socket` stays in place until unwatch().
template <typename Socket>
void watch(int epoll, SleepSet& sleepSet, Socket& socket, UniqueFd fd) {
    socket.fd = std::move(fd);
    epoll_event event{};
    event.events = EPOLLIN | EPOLLRDHUP;
    event.data.ptr = &socket;
    ::epoll_ctl(epoll, EPOLL_CTL_ADD, socket.fd.get(), &event);
    sleepSet.add(socket.fd.get());
}

/// And closes it. Nothing happens when it is closed already.
template <typename Socket>
void unwatch(int epoll, SleepSet& sleepSet, Socket& socket) {
    if (!socket.fd.isOpen()) return;
    ::epoll_ctl(epoll, EPOLL_CTL_DEL, socket.fd.get(), nullptr);
    sleepSet.remove(socket.fd.get());
    socket.fd.reset();
}

/// Calls heard(socket, events) for what has happened on sockets of `epoll`, of which there may be
/// more than one look takes (the set is level-triggered). Never waits. Returns how many.
template <typename Socket, typename Heard>
int lookAt(int epoll, Heard heard) {
    std::array<epoll_event, 64> events;
    const int ready = ::epoll_wait(epoll, events.data(), static_cast<int>(events.size()), 0);
    for (int at = 0; at < ready; ++at) {
        heard(static_cast<Socket*>(events[at].data.ptr), std::uint32_t{events[at].events});
    }
    return std::max(ready, 0);
}

}  // namespace isthmus
