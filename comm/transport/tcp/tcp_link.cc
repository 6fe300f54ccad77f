#include "comm/transport/tcp/tcp_link.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace isthmus {

namespace {

/// The one byte that ever goes against the direction of a connection: its accepting side leaves.
constexpr char kBye = 'B';
/// When the outgoing connection ends, the incoming one may still hold the peer's goodbye, or may
/// still be on its way in.
constexpr Time kHold = std::chrono::milliseconds(50);

msghdr messageOf(std::span<const iovec> pieces) {
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(pieces.data());
    message.msg_iovlen = pieces.size();
    return message;
}

std::size_t totalOf(std::span<const iovec> pieces) {
    std::size_t total = 0;
    for (const iovec& piece : pieces) total += piece.iov_len;
    return total;
}

bool isPassing(int error) {
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

}  // namespace

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
    tcp_info info{};
    socklen_t bytes = sizeof info;
    if (::getsockopt(socket.fd.get(), IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0) return;
    if (info.tcpi_unacked == 0) setPatience(true);
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
    moved.isEnd = got == 0;
    isEmpty_ = moved.bytes < totalOf(pieces);
    return moved;
}

TcpLink::TcpLink(TcpShared& shared, const ProcessId& peer, const TcpAddress& address,
                 std::uint32_t peerPid)
    : shared_(shared),
      peer_(peer),
      address_(address),
      name_("tcp " + toText(HostPort{address.host, address.port}) + " pid " +
            std::to_string(peerPid)),
      out_(shared),
      endpoint_(peer, *this, shared.listener, shared.options.limits) {
    out_.socket.link = this;
    out_.socket.isOut = true;
    in_.socket.link = this;
}

TcpLink::~TcpLink() {
    unwatch(out_.socket);
    unwatch(in_.socket);
}

void TcpLink::connect() {
    shared_.door->connect(peer_, address_,
                          [this](Result<UniqueFd> socket) { opened(std::move(socket)); });
}

void TcpLink::opened(Result<UniqueFd> socket) {
    if (endpoint_.isGone()) return;
    if (!socket.ok()) return broke(socket.status());
    watch(out_.socket, std::move(*socket));
    endpoint_.opened();
}

bool TcpLink::takeIncoming(UniqueFd fd) {
    if (hadIncoming_ || endpoint_.isGone()) return false;
    hadIncoming_ = true;
    watch(in_.socket, std::move(fd));
    in_.refill();
    return true;
}

void TcpLink::watch(TcpSocket& socket, UniqueFd fd) {
    socket.fd = std::move(fd);
    epoll_event event{};
    event.events = EPOLLIN | EPOLLRDHUP;
    event.data.ptr = &socket;
    ::epoll_ctl(shared_.epoll, EPOLL_CTL_ADD, socket.fd.get(), &event);
    shared_.sleepSet.add(socket.fd.get());
}

void TcpLink::unwatch(TcpSocket& socket) {
    if (!socket.fd.isOpen()) return;
    ::epoll_ctl(shared_.epoll, EPOLL_CTL_DEL, socket.fd.get(), nullptr);
    shared_.sleepSet.remove(socket.fd.get());
    socket.fd.reset();
}

void TcpLink::happened(const TcpSocket& socket, std::uint32_t events) {
    if (!socket.fd.isOpen()) return;
    if (socket.isOut) return outgoingHappened(events);
    in_.refill();
}

void TcpLink::outgoingHappened(std::uint32_t events) {
    if ((events & EPOLLOUT) != 0) out_.setRoom(true);
    if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) == 0) return;
    char said = 0;
    const ssize_t got = ::recv(out_.socket.fd.get(), &said, 1, MSG_DONTWAIT);
    if (got < 0 && isPassing(errno)) return;
    if (got == 1 && said == kBye) {
        saidBye_ = true;
        return;  // its end follows
    }
    broke(Status::peerLost(got < 0 ? std::strerror(errno) : "closed the connection"));
}

/// The outgoing connection is of no use any more. What the peer still has to say comes first.
void TcpLink::broke(const Status& why) {
    if (isHolding()) return;
    isBroken_ = true;
    brokenWhy_ = why;
    unwatch(out_.socket);
}

std::size_t TcpLink::write() {
    if (!isOpen() || isHolding() || !out_.hasRoom() || !endpoint_.hasOutput()) return 0;
    const Moved moved = endpoint_.write(out_);
    if (!moved.failure.ok()) broke(moved.failure);
    return moved.bytes;
}

std::size_t TcpLink::read() {
    if (in_.isEmpty() || !in_.socket.fd.isOpen()) return 0;
    const Moved moved = endpoint_.read(in_);
    if (endpoint_.isGone()) return moved.bytes;  // it said goodbye
    if (!moved.failure.ok()) {
        endpoint_.fail(Status::peerLost(name_ + ": " + moved.failure.what()));
    } else if (moved.isEnd) {
        endpoint_.fail(Status::peerLost(name_ + ": closed the connection without a goodbye"));
    }
    return moved.bytes;
}

int TcpLink::progress(Time now) {
    std::size_t moved = write();
    moved += read();
    moved += write();
    out_.watchWindow(now);
    // From now on: this process may have slept since it last looked.
    if (isHolding() && brokenSince_ == Time::zero()) brokenSince_ = now;
    if (isHolding() && !endpoint_.isGone() && now - brokenSince_ >= kHold) {
        const Status why = Status(brokenWhy_.code(), name_ + ": " + brokenWhy_.what());
        saidBye_ ? endpoint_.leave(Status::peerLost(name_ + " left")) : endpoint_.fail(why);
    }
    const int count = endpoint_.hasNews() ? endpoint_.complete() : 0;
    if (endpoint_.isGone()) {
        unwatch(out_.socket);
        unwatch(in_.socket);
    }
    return count + (moved > 0 ? 1 : 0);
}

bool TcpLink::hasWork() const {
    if (endpoint_.hasNews()) return true;
    if (endpoint_.isGone()) return false;
    return (in_.socket.fd.isOpen() && !in_.isEmpty()) ||
           (isOpen() && !isHolding() && out_.hasRoom() && endpoint_.hasOutput());
}

bool TcpLink::flush() {
    if (!isOpen() || isHolding()) return false;
    out_.setRoom(true);
    write();
    return !isHolding() && endpoint_.hasOutput();
}

void TcpLink::leave() {
    // Shut down, not only closed: closing with unread bytes would reset the connection, and the
    // peer might lose what it has not read yet (RFC 1122, 4.2.2.13).
    if (out_.socket.fd.isOpen()) ::shutdown(out_.socket.fd.get(), SHUT_WR);
    if (in_.socket.fd.isOpen()) {
        ::send(in_.socket.fd.get(), &kBye, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    unwatch(out_.socket);
    unwatch(in_.socket);
}

}  // namespace isthmus
