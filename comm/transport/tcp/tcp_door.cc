#include "comm/transport/tcp/tcp_door.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <list>

#include "comm/base/descriptors.hpp"
#include "comm/bootstrap/socket.hpp"
#include "comm/transport/tcp/tcp_attempt.hpp"

namespace isthmus {

namespace {

/// Connections that have not proved the job key yet. One more, and the oldest goes: honest ones
/// need milliseconds.
constexpr std::size_t kMostStrangers = 64;

void setOption(int fd, int level, int name, int value) {
    ::setsockopt(fd, level, name, &value, sizeof(value));
}

class AsioDoor final : public TcpDoor {
public:
    AsioDoor(const TcpOptions& options, const ProcessId& self, const JobKey& key,
             SleepSet& sleepSet, Accepted accepted)
        : options_(options),
          self_(self),
          key_(key),
          sleepSet_(sleepSet),
          accepted_(std::move(accepted)) {}
    ~AsioDoor() override { close(); }

    void listen(UniqueFd listener, std::uint16_t port, bool isVersion6) {
        listeners_.push_back(
            {{io_, isVersion6 ? SocketProtocol::v6() : SocketProtocol::v4(), listener.release()},
             port});
        sleepSet_.add(listeners_.back().acceptor.native_handle());
        waitForStrangers(listeners_.back().acceptor);
    }

    std::uint16_t port(std::size_t card) const override {
        return std::next(listeners_.begin(), static_cast<std::ptrdiff_t>(card))->port;
    }

    void connect(const ProcessId& peer, const TcpAddress& address, Connected connected) override {
        connects_.push_back(std::make_unique<TcpConnect>(io_, options_, address.key, self_, peer,
                                                         address, std::move(connected)));
        connects_.back()->start();
    }

    int poll() override {
        io_.restart();
        const std::size_t handlers = io_.poll();
        const auto canGo = [](const auto& attempt) { return attempt->canGo(); };
        std::erase_if(connects_, canGo);
        std::erase_if(strangers_, canGo);
        return static_cast<int>(handlers);
    }

    bool isConnecting() const override { return !connects_.empty(); }

    bool hasStrangers() const override { return !strangers_.empty(); }

    void close() override {
        if (isClosed_) return;
        isClosed_ = true;
        for (Listener& listener : listeners_) {
            sleepSet_.remove(listener.acceptor.native_handle());
            error_code ignored;
            listener.acceptor.close(ignored);
        }
        for (const auto& attempt : connects_) attempt->drop();
        for (const auto& attempt : strangers_) attempt->refuse("the transport was closed");
    }

private:
    using Acceptor = SocketProtocol::acceptor;
    struct Listener {
        Acceptor acceptor;
        std::uint16_t port;
    };

    void waitForStrangers(Acceptor& acceptor) {
        acceptor.async_wait(Acceptor::wait_read, [this, &acceptor](const error_code& error) {
            if (error || !acceptor.is_open()) return;
            while (takeOne(acceptor)) {
            }
            waitForStrangers(acceptor);
        });
    }

    /// False: nobody is waiting any more.
    bool takeOne(Acceptor& acceptor) {
        SocketProtocol::endpoint from;
        auto length = static_cast<socklen_t>(from.capacity());
        UniqueFd socket(::accept4(acceptor.native_handle(), from.data(), &length,
                                  SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!socket.isOpen()) {
            const int error = errno;
            if (error == EINTR || error == ECONNABORTED) return true;
            return spare_.turnAway(acceptor.native_handle(), error);
        }
        spare_.refill();
        prepareSocket(socket.get(), options_);
        makeRoom();
        const std::string name = from.address().to_string() + ":" + std::to_string(from.port());
        strangers_.push_back(std::make_unique<TcpAccept>(
            io_, std::move(socket), name, key_, options_.purpose, self_, sleepSet_, accepted_));
        strangers_.back()->start(options_.handshakeLimit);
        return true;
    }

    void makeRoom() {
        const auto isWaiting = [](const auto& stranger) { return !stranger->hasEnded(); };
        if (std::count_if(strangers_.begin(), strangers_.end(), isWaiting) <
            static_cast<std::ptrdiff_t>(kMostStrangers)) {
            return;
        }
        (*std::find_if(strangers_.begin(), strangers_.end(), isWaiting))
            ->refuse("too many others wait to say who they are");
    }

    const TcpOptions options_;
    const ProcessId self_;
    const JobKey key_;
    SleepSet& sleepSet_;
    const Accepted accepted_;
    SpareDescriptor spare_;
    boost::asio::io_context io_{1};  // one thread: no locks inside
    std::list<Listener> listeners_;  // one for each card
    bool isClosed_ = false;
    std::list<std::unique_ptr<TcpConnect>> connects_;
    std::list<std::unique_ptr<TcpAccept>> strangers_;
};

Result<UniqueFd> listenOn(const TcpOptions::Card& card, const PortRange& ports) {
    Result<UniqueFd> listener = listenAt({card.address, 0}, ports);
    if (listener.ok()) return listener;
    // Whatever the address is to the socket, here it is a wrong option.
    const Status& why = listener.status();
    const bool isWrong = why.code() == Status::Code::kInvalidArgument;
    return Status(isWrong ? Status::Code::kConfiguration : why.code(), why.what())
        .within("tcp on " + card.interfaceName);
}

}  // namespace

Result<std::unique_ptr<TcpDoor>> TcpDoor::open(const TcpOptions& options, const ProcessId& self,
                                               const JobKey& key, SleepSet& sleepSet,
                                               Accepted accepted) {
    if (options.cards.empty() || options.cards.size() > kMostTcpCards) {
        return Status::configuration(
            "the tcp transport takes 1 to " + std::to_string(kMostTcpCards) + " cards, was given " +
            std::to_string(options.cards.size()) + ": name fewer in ISTHMUS_INTERFACE");
    }
    try {
        auto door = std::make_unique<AsioDoor>(options, self, key, sleepSet, std::move(accepted));
        for (const TcpOptions::Card& card : options.cards) {
            error_code error;
            const auto numeric = boost::asio::ip::make_address(card.address, error);
            if (error || numeric.is_unspecified()) {
                return Status::configuration("\"" + card.address + "\" is no address of a card");
            }
            Result<UniqueFd> listener = listenOn(card, options.ports);
            if (!listener.ok()) return listener.status();
            const std::uint16_t port = placeOf(*listener, {card.address, 0}).port;
            door->listen(std::move(*listener), port, numeric.is_v6());
        }
        return std::unique_ptr<TcpDoor>(std::move(door));
    } catch (const boost::system::system_error& failure) {  // Asio: no descriptor for its epoll
        return Status::resource("tcp: " + causeOf(failure.code().value()));
    }
}

void prepareSocket(int fd, const TcpOptions& options) {
    setOption(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    setOption(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(options.userTimeout.count()));
    // A silent connection is looked after by the kernel, which ends it when nothing has come for
    // the time above and a probe is unanswered (tcp(7); Linux's tcp_keepalive_timer). So probes
    // begin long before: on a full line some of them are lost.
    const auto seconds = static_cast<int>(options.userTimeout.count() / 1000);
    const int idle = std::max(seconds / 3, 1);
    setOption(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    setOption(fd, IPPROTO_TCP, TCP_KEEPIDLE, idle);
    setOption(fd, IPPROTO_TCP, TCP_KEEPINTVL, 1);
    setOption(fd, IPPROTO_TCP, TCP_KEEPCNT, std::max(seconds - idle, 3));
    if (options.congestion == "system") return;
    // Measured on loopback: bbr 29 Gbit/s, cubic 79-94. Not every process may choose (EPERM): then
    // the system's stays.
    const auto choose = [fd](const std::string& name) {
        return ::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(),
                            static_cast<socklen_t>(name.size())) == 0;
    };
    if (!choose(options.congestion)) choose("reno");
}

TcpOptions TcpOptions::fromOptions(const Options& options) {
    TcpOptions made;
    made.congestion = options.text("ISTHMUS_TCP_CONGESTION");
    made.userTimeout = options.milliseconds("ISTHMUS_TCP_USER_TIMEOUT");
    made.connectLimit = options.milliseconds("ISTHMUS_CONNECT_TIMEOUT");
    return made;
}

}  // namespace isthmus
