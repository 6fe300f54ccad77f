#include "comm/transport/rma/rma_link.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "comm/transport/watched_socket.hpp"

namespace isthmus {

namespace {

/// What the accepting side of a connection says after the route: it leaves.
constexpr std::byte kBye{'B'};
/// When a connection ends, the peer's last messages may still be on their way.
constexpr Time kHold = std::chrono::milliseconds(50);

}  // namespace

RmaLink::RmaLink(RmaShared& shared, const ProcessId& peer, RmaPlace place,
                 std::uint64_t incomingRoute)
    : shared_(shared),
      peer_(peer),
      place_(std::move(place)),
      incomingRoute_(incomingRoute),
      name_(std::string(shared.device.name()) + " " +
            toText(HostPort{place_.door.host, place_.door.port}) + " pid " +
            std::to_string(place_.pid)),
      out_(shared.device),
      mover_(shared.device, shared.puts, *this, shared.options.directBytes),
      endpoint_(peer, *this, shared.listener, shared.options.door.limits, &mover_) {
    outgoing_.link = this;
    incoming_.link = this;
}

RmaLink::~RmaLink() {
    unwatch(outgoing_);
    unwatch(incoming_);
}

void RmaLink::connect() {
    shared_.door->connect(peer_, place_.door,
                          [this](Result<UniqueFd> socket) { opened(std::move(socket)); });
}

void RmaLink::opened(Result<UniqueFd> socket) {
    if (endpoint_.isGone()) return;
    if (!socket.ok()) return broke(socket.status());
    watch(outgoing_, std::move(*socket));
}

bool RmaLink::takeIncoming(UniqueFd fd) {
    if (hadIncoming_ || endpoint_.isGone()) return false;
    hadIncoming_ = true;
    const auto raw = std::as_bytes(std::span(&incomingRoute_, 1));
    if (::send(fd.get(), raw.data(), raw.size(), MSG_NOSIGNAL | MSG_DONTWAIT) !=
        static_cast<ssize_t>(raw.size())) {
        broke(Status::peerLost(std::strerror(errno)));
        return true;
    }
    watch(incoming_, std::move(fd));
    return true;
}

void RmaLink::watch(RmaSocket& socket, UniqueFd fd) {
    isthmus::watch(shared_.epoll, shared_.sleepSet, socket, std::move(fd));
}

void RmaLink::unwatch(RmaSocket& socket) {
    isthmus::unwatch(shared_.epoll, shared_.sleepSet, socket);
}

void RmaLink::happened(const RmaSocket& socket) {
    if (!socket.fd.isOpen()) return;
    if (&socket == &outgoing_ && routeBytes_ < route_.size()) return readRoute();
    std::byte said{};
    const ssize_t got = ::recv(socket.fd.get(), &said, 1, MSG_DONTWAIT);
    if (got < 0 && isPassing(errno)) return;
    if (&socket == &outgoing_ && got == 1 && said == kBye) {
        saidBye_ = true;
        return;  // its end follows
    }
    broke(Status::peerLost(got < 0 ? std::strerror(errno) : "closed the connection"));
    unwatch(&socket == &outgoing_ ? outgoing_ : incoming_);
}

void RmaLink::readRoute() {
    const ssize_t got = ::recv(outgoing_.fd.get(), route_.data() + routeBytes_,
                               route_.size() - routeBytes_, MSG_DONTWAIT);
    if (got < 0 && isPassing(errno)) return;
    if (got <= 0) {
        broke(Status::peerLost(got < 0 ? std::strerror(errno) : "closed the connection"));
        return unwatch(outgoing_);
    }
    routeBytes_ += static_cast<std::size_t>(got);
    if (routeBytes_ == route_.size()) openDevice();
}

void RmaLink::openDevice() {
    const auto peer = shared_.device.connect(place_.device);
    if (!peer.ok()) return broke(peer.status());
    devicePeer_ = *peer;
    std::uint64_t route = 0;
    std::memcpy(&route, route_.data(), sizeof(route));
    out_.open(devicePeer_, route);
    mover_.open(devicePeer_);
    endpoint_.opened();
}

/// Something of the connection is gone. What the peer still has to say comes first.
void RmaLink::broke(const Status& why) {
    if (isBroken_) return;
    isBroken_ = true;
    brokenWhy_ = why;
}

void RmaLink::arrived(std::uint64_t sequence, std::span<const std::byte> payload) {
    if (endpoint_.isGone()) return;
    const auto take = [this](std::span<const std::byte> bytes) { return endpoint_.take(bytes); };
    const Status taken = in_.arrived(sequence, payload, take);
    if (taken.ok() || endpoint_.isGone()) return;  // gone: it said goodbye
    endpoint_.fail(Status::peerLost(name_ + ": " + taken.what()));
}

void RmaLink::putEnded(const RmaPut& put, const Status& outcome) {
    mover_.ended(put);
    endpoint_.written(*put.operation, put.bytes, outcome);
}

void RmaLink::refill() {
    out_.refill();
    mover_.refill();
}

bool RmaLink::mustWatch() const {
    return isBroken_ || endpoint_.isGone() || endpoint_.isHolding() ||
           holdingSince_ != Time::zero();
}

void RmaLink::watchEnd() {
    // From now on: this process may have slept since it last looked.
    if (isBroken_ && brokenSince_ == Time::zero()) brokenSince_ = lastNow_;
    if (isBroken_ && !endpoint_.isGone() && lastNow_ - brokenSince_ >= kHold) {
        const Status why = Status(brokenWhy_.code(), name_ + ": " + brokenWhy_.what());
        saidBye_ ? endpoint_.leave(Status::peerLost(name_ + " left")) : endpoint_.fail(why);
    }
    if (!endpoint_.isHolding()) holdingSince_ = Time::zero();
    if (endpoint_.isHolding() && !endpoint_.isGone()) {
        if (holdingSince_ == Time::zero()) holdingSince_ = lastNow_;
        if (lastNow_ - holdingSince_ > shared_.options.recallLimit) {
            endpoint_.fail(Status::peerLost(name_ + ": did not give memory back within " +
                                            std::to_string(shared_.options.recallLimit.count()) +
                                            " ms"));
        }
    }
    if (!endpoint_.isGone()) return;
    unwatch(outgoing_);
    unwatch(incoming_);
    endDevice(RmaDevice::Ending::kNow);
    if (!isReleased_ && hasDeviceEnded()) {
        isReleased_ = true;
        endpoint_.released();
    }
}

void RmaLink::endDevice(RmaDevice::Ending ending) {
    if (!hasDevice() || isDeviceEnding_) return;
    isDeviceEnding_ = true;
    shared_.device.disconnect(devicePeer_, ending);
}

int RmaLink::write() {
    const bool hasOutput = endpoint_.hasOutput() && !out_.isFull();
    const bool hasDirectOutput = endpoint_.hasDirectOutput();
    if ((!hasOutput && !hasDirectOutput) || !isOpen()) return 0;
    std::uint64_t moved = hasOutput ? endpoint_.write(out_).bytes : 0;
    if (hasDirectOutput) moved += endpoint_.moveDirectly();
    return moved > 0 ? 1 : 0;
}

int RmaLink::progress(Time now) {
    lastNow_ = now;
    int count = write();
    if (mustWatch()) watchEnd();
    if (endpoint_.hasNews()) count += endpoint_.complete();
    return count;
}

bool RmaLink::hasWork() const {
    if (endpoint_.hasNews()) return true;
    if (endpoint_.isGone()) return false;
    return isOpen() && ((endpoint_.hasOutput() && !out_.isFull()) ||
                        (endpoint_.hasDirectOutput() && mover_.hasRoom()));
}

bool RmaLink::isWaiting() const {
    return (isBroken_ && !endpoint_.isGone()) || endpoint_.isHolding() ||
           (isDeviceEnding_ && !hasDeviceEnded_);
}

bool RmaLink::flush() {
    if (!isOpen() || isBroken_) return false;
    out_.refill();
    endpoint_.write(out_);
    endpoint_.moveDirectly();
    return !isBroken_ && (endpoint_.hasOutput() || endpoint_.isMovingDirectly());
}

void RmaLink::leave(const Status& why) {
    if (outgoing_.fd.isOpen()) ::shutdown(outgoing_.fd.get(), SHUT_WR);
    if (incoming_.fd.isOpen()) {
        ::send(incoming_.fd.get(), &kBye, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    unwatch(outgoing_);
    unwatch(incoming_);
    endpoint_.shut(why);
    endpoint_.released();
    endpoint_.complete();
}

}  // namespace isthmus
