#include <sys/socket.h>

#include <atomic>

#include "comm/base/log.hpp"
#include "comm/transport/tcp/tcp_attempt.hpp"

namespace isthmus {

namespace {

SocketProtocol protocolOf(int fd) {
    sockaddr_storage local{};
    socklen_t length = sizeof(local);
    ::getsockname(fd, reinterpret_cast<sockaddr*>(&local), &length);
    return local.ss_family == AF_INET6 ? SocketProtocol::v6() : SocketProtocol::v4();
}

}  // namespace

void logRefusal(const std::string& from, const std::string& why) {
    static std::atomic<std::int64_t> lastSecond{-1};
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    const std::int64_t second = std::chrono::duration_cast<std::chrono::seconds>(now).count();
    // Relaxed: nothing else depends on it.
    if (lastSecond.exchange(second, std::memory_order_relaxed) == second) return;
    log(LogLevel::kDebug, "rejected a connection from " + from + ": " + why);
}

TcpAccept::TcpAccept(boost::asio::io_context& io, UniqueFd socket, std::string from,
                     const JobKey& key, Purpose purpose, const ProcessId& self, SleepSet& sleepSet,
                     const TcpDoor::Accepted& accepted)
    : TcpAttempt(io),
      from_(std::move(from)),
      negotiation_(key, purpose, self),
      sleepSet_(sleepSet),
      accepted_(accepted),
      fd_(socket.get()) {
    error_code error;
    socket_.assign(protocolOf(fd_), fd_, error);
    if (error) {
        end();
        return;
    }
    socket.release();
    sleepSet_.add(fd_);
}

void TcpAccept::start(std::chrono::milliseconds limit) {
    if (hasEnded()) return;
    timer_.expires_after(limit);
    timer_.async_wait(guard([this](const error_code& error) {
        if (!error) refuse("it did not say in time who it is");
    }));
    boost::asio::async_read(socket_, boost::asio::buffer(hello_.data(), kGreetingBytes),
                            guard([this](const error_code& error, std::size_t) {
                                if (error) return refuse(error.message());
                                if (!isHelloGreeting(std::span(hello_).first<kGreetingBytes>())) {
                                    return refuse("bad magic");
                                }
                                readHello();
                            }));
}

void TcpAccept::readHello() {
    boost::asio::async_read(
        socket_, boost::asio::buffer(hello_.data() + kGreetingBytes, kHelloBytes - kGreetingBytes),
        guard([this](const error_code& error, std::size_t) {
            if (error) return refuse(error.message());
            sayAnswer();
        }));
}

void TcpAccept::sayAnswer() {
    const auto answer = negotiation_.answer(hello_);
    if (!answer.ok()) return refuse(answer.status().what());
    answer_ = *answer;
    boost::asio::async_write(socket_, boost::asio::buffer(answer_),
                             guard([this](const error_code& error, std::size_t) {
                                 if (error) return refuse(error.message());
                                 readProof();
                             }));
}

void TcpAccept::readProof() {
    boost::asio::async_read(
        socket_, boost::asio::buffer(proof_), guard([this](const error_code& error, std::size_t) {
            if (error) return refuse("it left without a proof of the job key");
            if (const Status checked = negotiation_.check(proof_); !checked.ok()) {
                return refuse(checked.what());
            }
            sleepSet_.remove(fd_);
            accepted_(negotiation_.peer(), takeSocket());
        }));
}

void TcpAccept::refuse(const std::string& why) {
    if (hasEnded()) return;
    logRefusal(from_, why);
    sleepSet_.remove(fd_);
    drop();
}

}  // namespace isthmus
