#include "comm/transport/tcp/tcp_link.hpp"

#include <sys/epoll.h>

namespace isthmus {

namespace {

/// When the outgoing connections have ended, the incoming ones may still hold the peer's goodbye,
/// or may still be on their way in.
constexpr Time kHold = std::chrono::milliseconds(50);

std::vector<std::string> namesOf(const TcpOptions& options, const std::vector<TcpAddress>& ways) {
    std::vector<std::string> names;
    for (std::size_t at = 0; at < ways.size(); ++at) {
        names.push_back("from " + options.cards[at].interfaceName + " (" +
                        options.cards[at].address + ") to " +
                        toText(HostPort{ways[at].host, ways[at].port}));
    }
    return names;
}

}  // namespace

TcpLink::TcpLink(TcpShared& shared, const ProcessId& peer, std::vector<TcpAddress> ways,
                 std::uint32_t peerPid)
    : shared_(shared),
      peer_(peer),
      ways_(std::move(ways)),
      name_("tcp " + toText(HostPort{ways_.front().host, ways_.front().port}) + " pid " +
            std::to_string(peerPid)),
      out_(shared, *this, namesOf(shared.options, ways_)),
      in_(shared, *this, ways_.size()),
      endpoint_(peer, *this, shared.listener, shared.options.limits) {}

TcpLink::~TcpLink() {
    out_.close();
    in_.close();
}

void TcpLink::connect() {
    for (std::size_t lane = 0; lane < ways_.size(); ++lane) {
        shared_.door->connect(peer_, ways_[lane], [this, lane](Result<UniqueFd> socket) {
            opened(lane, std::move(socket));
        });
    }
}

void TcpLink::opened(std::size_t lane, Result<UniqueFd> socket) {
    if (endpoint_.isGone()) return;
    if (!socket.ok()) {
        if (!out_.lose(lane, socket.status())) broke(socket.status());
        return;
    }
    out_.opened(lane, std::move(*socket));
    if (endpoint_.state() != Endpoint::State::kOpen) endpoint_.opened();
}

bool TcpLink::takeIncoming(UniqueFd fd) {
    return !endpoint_.isGone() && in_.take(std::move(fd));
}

void TcpLink::happened(const TcpSocket& socket, std::uint32_t events) {
    if (!socket.fd.isOpen()) return;
    if (socket.isOut) return outgoingHappened(socket.lane, events);
    in_.lane(socket.lane).refill();
}

void TcpLink::outgoingHappened(std::size_t lane, std::uint32_t events) {
    if ((events & EPOLLOUT) != 0) out_.lane(lane).setRoom(true);
    if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) == 0) return;
    const auto said = out_.hear(lane);
    if (!said.ok()) {
        if (!out_.lose(lane, said.status())) broke(said.status());
    } else if (*said) {
        saidBye_ = true;  // the ends of its connections follow
    }
}

/// The outgoing connections are of no use any more. What the peer still has to say comes first.
void TcpLink::broke(const Status& why) {
    if (isHolding()) return;
    isBroken_ = true;
    brokenWhy_ = why;
    out_.close();
}

std::size_t TcpLink::write() {
    if (!isOpen() || isHolding()) return 0;
    std::size_t bytes = out_.push();
    if (out_.hasRoom() && endpoint_.hasOutput()) {
        const Moved moved = endpoint_.write(out_);
        bytes += moved.bytes;
        if (!moved.failure.ok()) broke(moved.failure);
    }
    if (!out_.isOpen()) broke(out_.lastLoss());
    return bytes;
}

std::size_t TcpLink::read() {
    if (in_.isEmpty()) return 0;
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
    out_.watch(now);
    // From now on: this process may have slept since it last looked.
    if (isHolding() && brokenSince_ == Time::zero()) brokenSince_ = now;
    if (isHolding() && !endpoint_.isGone() && now - brokenSince_ >= kHold) {
        const Status why = Status(brokenWhy_.code(), name_ + ": " + brokenWhy_.what());
        saidBye_ ? endpoint_.leave(Status::peerLost(name_ + " left")) : endpoint_.fail(why);
    }
    const int count = endpoint_.hasNews() ? endpoint_.complete() : 0;
    if (endpoint_.isGone()) {
        out_.close();
        in_.close();
    }
    return count + (moved > 0 ? 1 : 0);
}

bool TcpLink::hasWork() const {
    if (endpoint_.hasNews()) return true;
    if (endpoint_.isGone()) return false;
    if (!in_.isEmpty()) return true;
    return isOpen() && !isHolding() &&
           (out_.canPush() || (out_.hasRoom() && endpoint_.hasOutput()));
}

bool TcpLink::flush() {
    if (!isOpen() || isHolding()) return false;
    out_.setRoom();
    write();
    return !isHolding() && (endpoint_.hasOutput() || out_.hasRest());
}

void TcpLink::leave() {
    // Shut down, not only closed: closing with unread bytes would reset the connection, and the
    // peer might lose what it has not read yet (RFC 1122, 4.2.2.13).
    out_.close();
    in_.sayBye();
    in_.close();
}

}  // namespace isthmus
