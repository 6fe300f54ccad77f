#include "comm/transport/shm/shm_link.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "comm/transport/watched_socket.hpp"

namespace isthmus {

namespace {

/// A peer whose end of our connection closed may still be at the door with its goodbye.
constexpr Time kHold = std::chrono::milliseconds(50);

bool fits(std::uint64_t offset, std::uint64_t bytes, std::uint64_t capacity) {
    return offset % alignof(RingPositions) == 0 && offset <= capacity && bytes <= capacity - offset;
}

}  // namespace

ShmLink::ShmLink(ShmShared& shared, const ProcessId& peer, std::string socketName,
                 std::uint32_t peerPid, const JobKey& peerKey)
    : shared_(shared),
      peer_(peer),
      peerKey_(peerKey),
      socketName_(std::move(socketName)),
      name_("shm pid " + std::to_string(peerPid)),
      endpoint_(peer, *this, shared.listener, shared.options.limits) {
    out_.link = this;
    in_.link = this;
}

ShmLink::~ShmLink() {
    unwatch(out_);
    unwatch(in_);
    // A peer that is still there may look at the ring at any time: then it stays as long as the
    // arena does.
    const bool isPeerGone = hasInEnded_ || endpoint_.state() == Endpoint::State::kLeft;
    if (ring_ != nullptr && isPeerGone) shared_.arena.free(ring_);
}

void ShmLink::connect() {
    const Result<void*> memory = shared_.arena.allocate(kRingMemoryBytes, alignof(RingPositions));
    if (!memory.ok()) return failed(memory.status());
    ring_ = static_cast<std::byte*>(*memory);
    std::memset(ring_, 0, sizeof(RingPositions));
    writer_ = std::make_unique<RingWriter>(ring_);
    const ShmOffer offer{*shared_.arena.offsetOf(ring_, kRingMemoryBytes), shared_.pageOffset};
    connecting_ = std::make_unique<ShmConnect>(peerKey_, shared_.self, peer_, socketName_, offer,
                                               shared_.arena.fd(), shared_.sleepSet,
                                               shared_.options.connectLimit);
}

void ShmLink::failed(const Status& why) {
    endpoint_.fail(Status(why.code(), name_ + ": " + why.what()));
}

bool ShmLink::pollConnecting() {
    auto outcome = connecting_->poll(shared_.now);
    if (!outcome.has_value()) return false;
    connecting_.reset();
    connected(std::move(*outcome));
    return true;
}

void ShmLink::connected(Result<UniqueFd> socket) {
    if (!socket.ok()) {
        // It may have gone in order, and its goodbye be in the ring that we map already.
        const bool isLost = socket.status().code() == Status::Code::kPeerLost;
        if (isLost && reader_ != nullptr && !hasInEnded_) return;
        return failed(socket.status());
    }
    watch(out_, std::move(*socket));
    openIfReady();
}

/// The peer proved who it is and gave us its memory.
void ShmLink::takeIncoming(ShmAccept::Guest guest) {
    if (reader_ != nullptr || endpoint_.isGone()) return;
    auto mapped = PeerArena::map(std::move(guest.arena));
    if (!mapped.ok()) return failed(mapped.status());
    const std::uint64_t capacity = (*mapped)->capacityBytes();
    if (!fits(guest.offer.ringOffset, kRingMemoryBytes, capacity) ||
        !fits(guest.offer.pageOffset, sizeof(ShmPage), capacity)) {
        return failed(Status::mismatch("places outside its memory"));
    }
    peerArena_ = std::move(*mapped);
    std::byte* const base = peerArena_->base();
    peerPage_ = reinterpret_cast<ShmPage*>(base + guest.offer.pageOffset);
    reader_ = std::make_unique<RingReader>(base + guest.offer.ringOffset);
    watch(in_, std::move(guest.socket));
    endpoint_.connect();  // so that both can write and both see the other's memory
    openIfReady();
}

void ShmLink::openIfReady() {
    if (out_.fd.isOpen() && reader_ != nullptr) endpoint_.opened();
}

Endpoint::MappedArena ShmLink::mapped() const {
    if (!isOpen()) return {};
    return {peerArena_->base(), peerArena_->capacityBytes()};
}

void ShmLink::ringDoorbell() {
    if (peerPage_ == nullptr) return;
    // Pairs with the fence in ShmTransport::prepareSleep: either we see that the peer sleeps, or it
    // sees what we wrote before.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (peerPage_->isAsleep.load(std::memory_order_relaxed) == 0) return;
    if (peerPage_->isAsleep.exchange(0, std::memory_order_relaxed) == 0) return;
    const char ring = 1;
    // A full socket has enough of them in it.
    if (out_.fd.isOpen()) ::send(out_.fd.get(), &ring, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void ShmLink::watch(ShmSocket& socket, UniqueFd fd) {
    isthmus::watch(shared_.epoll, shared_.sleepSet, socket, std::move(fd));
}

void ShmLink::unwatch(ShmSocket& socket) {
    isthmus::unwatch(shared_.epoll, shared_.sleepSet, socket);
}

int ShmLink::lookAtSockets() {
    int count = 0;
    if (connecting_ != nullptr && !endpoint_.isGone() && pollConnecting()) ++count;
    for (ShmSocket* const socket : {&out_, &in_}) {
        if (!std::exchange(socket->hasHappened, false) || !socket->fd.isOpen()) continue;
        ++count;
        std::array<char, 64> bells;
        const ssize_t got = ::recv(socket->fd.get(), bells.data(), bells.size(), MSG_DONTWAIT);
        if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) continue;
        socketEnded(*socket);
    }
    return count;
}

void ShmLink::socketEnded(ShmSocket& socket) {
    unwatch(socket);
    const bool isBothEnds = reader_ != nullptr;  // one process
    if (&socket == &in_ || isBothEnds) {
        hasInEnded_ = true;
    } else {
        brokenSince_ = shared_.now;
    }
}

std::size_t ShmLink::write() {
    if (!isOpen() || !endpoint_.hasOutput()) return 0;
    const Moved moved = endpoint_.write(*writer_);
    if (!moved.failure.ok()) failed(moved.failure);
    return moved.bytes;
}

std::size_t ShmLink::read() {
    if (reader_ == nullptr || !reader_->hasBytes()) return 0;
    const Moved moved = endpoint_.read(*reader_);
    if (!moved.failure.ok()) failed(moved.failure);  // no effect after a goodbye
    return moved.bytes;
}

bool ShmLink::isQuiet() const {
    return reader_ != nullptr && !reader_->hasBytes() && !hasInEnded_ && !endpoint_.hasOutput() &&
           !endpoint_.hasNews() && !endpoint_.isGone();
}

int ShmLink::progress() {
    if (isQuiet()) return 0;
    std::size_t moved = 0;
    if (!endpoint_.isGone()) {
        const bool hadEnded = hasInEnded_;
        moved = write();
        moved += read();
        moved += write();
        if (moved > 0) ringDoorbell();
        if (hadEnded && !reader_->hasBytes()) {
            endpoint_.fail(Status::peerLost(name_ + " vanished without a goodbye"));
        }
        if (brokenSince_ != Time::zero() && reader_ == nullptr &&
            shared_.now - brokenSince_ >= kHold) {
            endpoint_.fail(Status::peerLost(name_ + " closed the connection"));
        }
    }
    const int count = endpoint_.hasNews() ? endpoint_.complete() : 0;
    if (endpoint_.isGone() && (in_.fd.isOpen() || out_.fd.isOpen() || connecting_ != nullptr)) {
        connecting_.reset();
        unwatch(out_);
        unwatch(in_);
    }
    return count + (moved > 0 ? 1 : 0);
}

bool ShmLink::hasWork() const {
    if (endpoint_.hasNews()) return true;
    if (endpoint_.isGone()) return false;
    return (reader_ != nullptr && (reader_->hasBytes() || hasInEnded_)) ||
           (isOpen() && endpoint_.hasOutput() && writer_->hasRoom());
}

bool ShmLink::flush() {
    if (!isOpen() || hasInEnded_) return false;
    if (write() > 0) ringDoorbell();
    return isOpen() && endpoint_.hasOutput();
}

void ShmLink::leave() {
    connecting_.reset();
    unwatch(out_);
    unwatch(in_);
}

}  // namespace isthmus
