#include "comm/transport/shm/shm_handshake.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "comm/base/descriptors.hpp"
#include "comm/bootstrap/socket.hpp"
#include "comm/memory/fd_passing.hpp"

namespace isthmus {

namespace {

/// How many bytes there were, 0 for none yet. A failure when the other end is gone.
Result<std::size_t> receiveNow(int socket, std::span<std::byte> room) {
    const ssize_t got = ::recv(socket, room.data(), room.size(), MSG_DONTWAIT);
    if (got > 0) return static_cast<std::size_t>(got);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return std::size_t{0};
    return Status::peerLost(got == 0 ? "closed the connection" : std::strerror(errno));
}

Status sendNow(int socket, std::span<const std::byte> data) {
    const ssize_t sent = ::send(socket, data.data(), data.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent == static_cast<ssize_t>(data.size())) return {};
    return Status::peerLost(sent < 0 ? std::strerror(errno) : "a full socket");
}

}  // namespace

ShmConnect::ShmConnect(const JobKey& key, const ProcessId& self, const ProcessId& peer,
                       std::string socketName, const ShmOffer& offer, int arenaFd,
                       SleepSet& sleepSet, Time limit)
    : socketName_(std::move(socketName)),
      offer_(offer),
      arenaFd_(arenaFd),
      sleepSet_(sleepSet),
      limit_(limit),
      negotiation_(key, Purpose::kSharedMemory, self, peer) {}

ShmConnect::~ShmConnect() {
    if (socket_.isOpen()) sleepSet_.remove(socket_.get());
}

std::optional<Result<UniqueFd>> ShmConnect::poll(Time now) {
    if (deadline_ == Time::max()) deadline_ = now + limit_;
    if (now > deadline_) return Result<UniqueFd>(Status::peerLost("no answer in time"));
    if (!socket_.isOpen()) {
        if (const Status dialed = dial(); !dialed.ok()) return Result<UniqueFd>(dialed);
        if (!socket_.isOpen()) return std::nullopt;
    }
    const Result<bool> isRead = readAnswer();
    if (!isRead.ok()) return Result<UniqueFd>(isRead.status());
    if (!*isRead) return std::nullopt;
    if (const Status checked = negotiation_.check(answer_); !checked.ok()) {
        return Result<UniqueFd>(checked);
    }
    if (const Status sent = sendProof(); !sent.ok()) return Result<UniqueFd>(sent);
    sleepSet_.remove(socket_.get());
    return Result<UniqueFd>(std::move(socket_));
}

/// Success without a socket: the peer's queue is full, try again.
Status ShmConnect::dial() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (socketName_.size() < 2 || socketName_.size() > sizeof(address.sun_path)) {
        return Status::mismatch("a socket name that is none");
    }
    // The first byte of an abstract name is zero where people write '@' (unix(7)).
    std::memcpy(address.sun_path + 1, socketName_.data() + 1, socketName_.size() - 1);
    const auto length =
        static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socketName_.size());
    UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.isOpen()) return Status::resource(causeOf(errno));
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) {
        return errno == EAGAIN ? Status() : Status::peerLost(std::strerror(errno));
    }
    if (!isOurUser(socket.get())) return Status::configuration("it runs as another user");
    ISTHMUS_TRY(sendNow(socket.get(), negotiation_.hello()));
    socket_ = std::move(socket);
    sleepSet_.add(socket_.get());
    return {};
}

Result<bool> ShmConnect::readAnswer() {
    const auto got = receiveNow(socket_.get(), std::span(answer_).subspan(answered_));
    if (!got.ok()) return got.status();
    answered_ += *got;
    return answered_ == answer_.size();
}

Status ShmConnect::sendProof() {
    std::array<std::byte, kProofBytes + sizeof(ShmOffer)> last;
    const Mac proof = negotiation_.proof();
    std::memcpy(last.data(), proof.data(), proof.size());
    std::memcpy(last.data() + proof.size(), &offer_, sizeof(offer_));
    const auto sent = sendFds(socket_.get(), last, std::span(&arenaFd_, 1));
    if (!sent.ok()) return sent.status();
    return *sent ? Status() : Status::peerLost("a full socket");
}

ShmAccept::ShmAccept(const JobKey& key, const ProcessId& self, UniqueFd socket, SleepSet& sleepSet,
                     Time limit)
    : sleepSet_(sleepSet),
      limit_(limit),
      negotiation_(key, Purpose::kSharedMemory, self),
      socket_(std::move(socket)) {
    sleepSet_.add(socket_.get());
}

ShmAccept::~ShmAccept() {
    if (socket_.isOpen()) sleepSet_.remove(socket_.get());
}

std::optional<Result<std::unique_ptr<ShmAccept::Guest>>> ShmAccept::poll(Time now) {
    using Outcome = Result<std::unique_ptr<Guest>>;
    if (deadline_ == Time::max()) deadline_ = now + limit_;
    if (now > deadline_) return Outcome(Status::timeout("it did not say in time who it is"));
    const Result<bool> isRead = isAnswered_ ? readProof() : readHello();
    if (!isRead.ok()) return Outcome(isRead.status());
    if (!*isRead) return std::nullopt;
    Mac proof;
    std::memcpy(proof.data(), last_.data(), proof.size());
    if (const Status checked = negotiation_.check(proof); !checked.ok()) return Outcome(checked);
    if (!arena_.isOpen()) return Outcome(Status::mismatch("no memory came with the proof"));
    auto guest = std::make_unique<Guest>();
    std::memcpy(&guest->offer, last_.data() + proof.size(), sizeof(guest->offer));
    guest->peer = negotiation_.peer();
    guest->arena = std::move(arena_);
    sleepSet_.remove(socket_.get());
    guest->socket = std::move(socket_);
    return Outcome(std::move(guest));
}

/// Never true: the proof comes after it.
Result<bool> ShmAccept::readHello() {
    const auto got = receiveNow(socket_.get(), std::span(hello_).subspan(got_));
    if (!got.ok()) return got.status();
    got_ += *got;
    if (got_ >= kGreetingBytes && !isHelloGreeting(std::span(hello_).first<kGreetingBytes>())) {
        return Status::mismatch("bad magic");
    }
    if (got_ < hello_.size()) return false;
    const auto answer = negotiation_.answer(hello_);
    if (!answer.ok()) return answer.status();
    if (const Status sent = sendNow(socket_.get(), *answer); !sent.ok()) return sent;
    isAnswered_ = true;
    got_ = 0;
    return false;
}

Result<bool> ShmAccept::readProof() {
    auto passed = receiveFds(socket_.get(), std::span(last_).subspan(got_));
    if (!passed.ok()) return passed.status();
    if (!passed->has_value()) return false;
    PassedFds& came = **passed;
    if (came.payloadBytes == 0) {
        return Status::peerLost("it left without a proof of the job key");
    }
    if (!came.fds.empty()) arena_ = std::move(came.fds.front());
    got_ += came.payloadBytes;
    return got_ == last_.size();
}

}  // namespace isthmus
