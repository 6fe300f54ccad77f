#include "comm/transport/tcp/tcp_stream.hpp"

// The kernel's, for tcpi_bytes_acked; netinet/tcp.h has an older tcp_info and does not go with it.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "comm/transport/watched_socket.hpp"

namespace isthmus {

namespace {

msghdr messageOf(std::span<const iovec> pieces) {
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(pieces.data());
    message.msg_iovlen = pieces.size();
    return message;
}

}  // namespace

void TcpSocket::watch(TcpShared& shared, UniqueFd opened) {
    isthmus::watch(shared.epoll, shared.sleepSet, *this, std::move(opened));
}

void TcpSocket::unwatch(TcpShared& shared) {
    isthmus::unwatch(shared.epoll, shared.sleepSet, *this);
}

Moved TcpOut::writeSome(std::span<const iovec> pieces) {
    Moved moved;
    if (!hasRoom_) return moved;
    const msghdr message = messageOf(pieces);
    const ssize_t sent = ::sendmsg(socket.fd.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && !isPassing(errno)) {
        moved.failure = Status::peerLost(std::strerror(errno));
        return moved;
    }
    if (sent > 0) moved.bytes = static_cast<std::size_t>(sent);
    socket.sent += moved.bytes;
    if (moved.bytes < totalOf(pieces)) setRoom(false);
    return moved;
}

void TcpOut::setRoom(bool hasRoom) {
    if (hasRoom == hasRoom_) return;
    hasRoom_ = hasRoom;
    watchedAt_ = Time::zero();
    if (hasRoom && isPatient_) setPatience(false);
    epoll_event event{};
    event.events = EPOLLIN | EPOLLRDHUP | (hasRoom ? 0U : static_cast<std::uint32_t>(EPOLLOUT));
    event.data.ptr = &socket;
    ::epoll_ctl(shared_.epoll, EPOLL_CTL_MOD, socket.fd.get(), &event);
    shared_.sleepSet.wantWrite(socket.fd.get(), !hasRoom);
}

// The kernel ends a connection whose window stays closed for the limit although the peer's system
// answers (tcp(7), TCP_USER_TIMEOUT); with 0 it asks on for as long as there are answers.
void TcpOut::setPatience(bool isPatient) {
    isPatient_ = isPatient;
    const int limit = isPatient ? 0 : static_cast<int>(shared_.options.userTimeout.count());
    ::setsockopt(socket.fd.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, sizeof limit);
}

void TcpOut::watchWindow(Time now) {
    if (hasRoom_ || isPatient_ || !socket.fd.isOpen()) return;
    if (watchedAt_ == Time::zero()) watchedAt_ = now;
    if (now - watchedAt_ < windowLook(shared_.options)) return;
    watchedAt_ = now;
    if (progress().unacknowledged == 0) setPatience(true);
}

TcpOut::Progress TcpOut::progress() const {
    tcp_info info{};
    socklen_t bytes = sizeof info;
    if (::getsockopt(socket.fd.get(), IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0) return {1, 0};
    return {info.tcpi_unacked, info.tcpi_bytes_acked};
}

Moved TcpIn::readSome(std::span<const iovec> pieces) {
    Moved moved;
    if (isEmpty_) return moved;
    msghdr message = messageOf(pieces);
    const ssize_t got = ::recvmsg(socket.fd.get(), &message, MSG_DONTWAIT);
    if (got < 0) {
        isEmpty_ = true;
        if (!isPassing(errno)) moved.failure = Status::peerLost(std::strerror(errno));
        return moved;
    }
    moved.bytes = static_cast<std::size_t>(got);
    socket.received += moved.bytes;
    moved.isEnd = got == 0;
    isEmpty_ = moved.bytes < totalOf(pieces);
    return moved;
}

}  // namespace isthmus
