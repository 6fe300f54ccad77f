#pragma once

#include <sys/epoll.h>

#include <cerrno>
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

}  // namespace isthmus
