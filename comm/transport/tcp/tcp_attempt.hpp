#pragma once

// Private to the door: the only header that includes Boost.Asio.

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

#include "comm/transport/negotiate.hpp"
#include "comm/transport/tcp/tcp_door.hpp"

namespace isthmus {

using boost::system::error_code;
using SocketProtocol = boost::asio::ip::tcp;

/// What both sides of a handshake share. Handlers hold a plain pointer to it; it lives until it has
/// ended and its last handler has run.
class TcpAttempt {
public:
    explicit TcpAttempt(boost::asio::io_context& io) : socket_(io), timer_(io) {}
    virtual ~TcpAttempt() = default;

    bool hasEnded() const { return hasEnded_; }
    bool canGo() const { return hasEnded_ && handlers_ == 0; }
    /// Ends without an outcome.
    void drop() {
        hasEnded_ = true;
        hangUp();
    }

protected:
    /// Wraps a handler: counts it, and does not run it when the attempt has ended.
    template <typename Handler>
    auto guard(Handler handler) {
        ++handlers_;
        return [this, handler](const error_code& error, auto... more) {
            --handlers_;
            if (!hasEnded_) handler(error, more...);
        };
    }
    void hangUp() {
        error_code ignored;
        socket_.close(ignored);
        timer_.cancel();
    }
    /// The socket, out of Asio's hands.
    UniqueFd takeSocket() {
        hasEnded_ = true;
        timer_.cancel();
        error_code error;
        return UniqueFd(socket_.release(error));
    }
    void end() { hasEnded_ = true; }

    SocketProtocol::socket socket_;
    boost::asio::steady_timer timer_;

private:
    bool hasEnded_ = false;
    int handlers_ = 0;
};

/// One peer that is being connected to.
class TcpConnect final : public TcpAttempt {
public:
    TcpConnect(boost::asio::io_context& io, const TcpOptions& options, const JobKey& key,
               const ProcessId& self, const ProcessId& peer, const TcpAddress& address,
               TcpDoor::Connected connected);

    void start();

private:
    void tryOnce();
    Status openSocket();
    void limitAttempt();
    void sayHello();
    void readGreeting();
    void readAnswer();
    void takeAnswer();
    void failed(const error_code& error);
    void failed(const Status& why, bool isRefused);
    void finish(Result<UniqueFd> outcome);

    const TcpOptions& options_;
    const JobKey key_;
    const ProcessId self_;
    const ProcessId peer_;
    const TcpAddress address_;
    const TcpDoor::Connected connected_;
    SocketProtocol::endpoint target_;
    std::unique_ptr<NegotiateConnector> negotiation_;
    Answer answer_{};
    Mac proof_{};
    std::chrono::steady_clock::time_point started_;
    std::chrono::milliseconds pause_;
    int attempt_ = 0;
    bool isTimedOut_ = false;
};

/// One stranger at the door.
class TcpAccept final : public TcpAttempt {
public:
    TcpAccept(boost::asio::io_context& io, UniqueFd socket, std::string from, const JobKey& key,
              Purpose purpose, const ProcessId& self, SleepSet& sleepSet,
              const TcpDoor::Accepted& accepted);

    void start(std::chrono::milliseconds limit);
    void refuse(const std::string& why);

private:
    void readHello();
    void sayAnswer();
    void readProof();

    const std::string from_;
    NegotiateAcceptor negotiation_;
    SleepSet& sleepSet_;
    const TcpDoor::Accepted& accepted_;
    const int fd_;
    Hello hello_{};
    Answer answer_{};
    Mac proof_{};
};

/// One line a second at most: scanners do not fill logs.
void logRefusal(const std::string& from, const std::string& why);

}  // namespace isthmus
