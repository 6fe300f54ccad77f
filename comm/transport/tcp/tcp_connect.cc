#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "comm/base/descriptors.hpp"
#include "comm/transport/tcp/tcp_attempt.hpp"

namespace isthmus {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstPause{5};
constexpr milliseconds kLongestPause{500};
/// A process listens before anybody knows its address, so a refused connection means that it has
/// gone; half a second forgives a restarting firewall or a full queue.
constexpr milliseconds kRefusedLimit{500};

Result<SocketProtocol::endpoint> endpointOf(const std::string& host, std::uint16_t port,
                                            const std::string& interfaceName) {
    error_code error;
    boost::asio::ip::address address = boost::asio::ip::make_address(host, error);
    if (error) return Status::configuration("\"" + host + "\" is no numeric address");
    if (address.is_v6() && address.to_v6().is_link_local()) {
        // The scope in a peer's text is of the peer's machine: ours is the interface we use.
        auto scoped = address.to_v6();
        if (const unsigned index = ::if_nametoindex(interfaceName.c_str())) scoped.scope_id(index);
        address = scoped;
    }
    return SocketProtocol::endpoint(address, port);
}

}  // namespace

TcpConnect::TcpConnect(boost::asio::io_context& io, const TcpOptions& options, const JobKey& key,
                       const ProcessId& self, const ProcessId& peer, const TcpAddress& address,
                       TcpDoor::Connected connected)
    : TcpAttempt(io),
      options_(options),
      key_(key),
      self_(self),
      peer_(peer),
      address_(address),
      connected_(std::move(connected)),
      started_(std::chrono::steady_clock::now()),
      pause_(kFirstPause) {}

void TcpConnect::start() {
    const auto target =
        endpointOf(address_.host, address_.port, options_.cards[address_.card].interfaceName);
    if (!target.ok()) return finish(target.status());
    target_ = *target;
    tryOnce();
}

void TcpConnect::tryOnce() {
    // Descriptors that have run out are soon free again, or not at all.
    if (const Status opened = openSocket(); !opened.ok()) return failed(opened, true);
    negotiation_ = std::make_unique<NegotiateConnector>(key_, options_.purpose, self_, peer_);
    limitAttempt();
    socket_.async_connect(target_, guard([this](const error_code& error) {
                              if (error) return failed(error);
                              sayHello();
                          }));
}

/// Asio's own open does not set close-on-exec.
Status TcpConnect::openSocket() {
    const int family = target_.protocol().family();
    UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
    if (!fd.isOpen()) return Status::resource("no socket: " + causeOf(errno));
    prepareSocket(fd.get(), options_);
    const TcpOptions::Card& card = options_.cards[address_.card];
    const auto source = endpointOf(card.address, 0, card.interfaceName);
    if (source.ok() && source->protocol() == target_.protocol()) {
        const int on = 1;
        // The port is chosen at connect, when four numbers tell connections apart (ip(7)).
        ::setsockopt(fd.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
        if (::bind(fd.get(), source->data(), static_cast<socklen_t>(source->size())) != 0) {
            return Status::configuration("cannot use " + card.address + ": " +
                                         std::strerror(errno));
        }
    }
    error_code error;
    socket_.assign(target_.protocol(), fd.get(), error);
    if (error) return Status::resource(error.message());
    fd.release();
    return {};
}

void TcpConnect::limitAttempt() {
    isTimedOut_ = false;
    timer_.expires_after(options_.handshakeLimit);
    timer_.async_wait(guard([this, attempt = ++attempt_](const error_code& error) {
        if (error || attempt != attempt_) return;
        isTimedOut_ = true;
        error_code ignored;
        socket_.close(ignored);  // ends what is under way, which then fails
    }));
}

void TcpConnect::sayHello() {
    boost::asio::async_write(socket_, boost::asio::buffer(negotiation_->hello()),
                             guard([this](const error_code& error, std::size_t) {
                                 if (error) return failed(error);
                                 readGreeting();
                             }));
}

void TcpConnect::readGreeting() {
    boost::asio::async_read(
        socket_, boost::asio::buffer(answer_.data(), kGreetingBytes),
        guard([this](const error_code& error, std::size_t) {
            if (error) return failed(error);
            if (!isAnswerGreeting(std::span(answer_).first<kGreetingBytes>())) {
                return finish(Status::configuration("what answers there is not isthmus"));
            }
            readAnswer();
        }));
}

void TcpConnect::readAnswer() {
    boost::asio::async_read(
        socket_,
        boost::asio::buffer(answer_.data() + kGreetingBytes, kAnswerBytes - kGreetingBytes),
        guard([this](const error_code& error, std::size_t) {
            if (error) return failed(error);
            takeAnswer();
        }));
}

void TcpConnect::takeAnswer() {
    if (const Status checked = negotiation_->check(answer_); !checked.ok()) {
        return finish(checked);
    }
    proof_ = negotiation_->proof();
    boost::asio::async_write(socket_, boost::asio::buffer(proof_),
                             guard([this](const error_code& error, std::size_t) {
                                 if (error) return failed(error);
                                 finish(takeSocket());
                             }));
}

void TcpConnect::failed(const error_code& error) {
    if (isTimedOut_) {
        return failed(Status::peerLost("no answer within " +
                                       std::to_string(options_.handshakeLimit.count()) + " ms"),
                      false);
    }
    failed(Status::peerLost(error.message()), error == boost::asio::error::connection_refused);
}

void TcpConnect::failed(const Status& why, bool isRefused) {
    hangUp();
    const auto tried = std::chrono::steady_clock::now() - started_;
    const milliseconds limit =
        isRefused ? std::min(kRefusedLimit, options_.connectLimit) : options_.connectLimit;
    if (tried + pause_ > limit) return finish(why);
    timer_.expires_after(pause_);
    pause_ = std::min(pause_ * 2, kLongestPause);
    timer_.async_wait(guard([this](const error_code& error) {
        if (!error) tryOnce();
    }));
}

void TcpConnect::finish(Result<UniqueFd> outcome) {
    drop();
    connected_(std::move(outcome));
}

}  // namespace isthmus
