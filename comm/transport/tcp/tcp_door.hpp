#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "comm/base/sleep_set.hpp"
#include "comm/base/unique_fd.hpp"
#include "comm/transport/tcp/tcp_transport.hpp"

namespace isthmus {

struct TcpAddress {
    std::string host;
    std::uint16_t port = 0;
    JobKey key;            ///< of the peer's door
    std::size_t card = 0;  ///< of ours, that leads there
};

/// Makes connections for a TcpTransport: listens, connects, retries, negotiates, and hands out
/// sockets that are ready for frames. The only part that uses Boost.Asio; polled, never blocks.
class TcpDoor {
public:
    /// A peer proved who it is and will send on this socket.
    using Accepted = std::function<void(const ProcessId& peer, UniqueFd socket)>;
    using Connected = std::function<void(Result<UniqueFd> socket)>;

    static Result<std::unique_ptr<TcpDoor>> open(const TcpOptions& options, const ProcessId& self,
                                                 const JobKey& key, SleepSet& sleepSet,
                                                 Accepted accepted);
    virtual ~TcpDoor() = default;

    virtual std::uint16_t port(std::size_t card = 0) const = 0;
    /// Tries until options.connectLimit; `connected` runs once.
    virtual void connect(const ProcessId& peer, const TcpAddress& address, Connected connected) = 0;
    /// Moves everything on. Returns how many things happened.
    virtual int poll() = 0;
    /// True while something is under way that needs poll without a wake-up.
    virtual bool isConnecting() const = 0;
    /// True while somebody has come who has not said yet who it is.
    virtual bool hasStrangers() const = 0;
    virtual void close() = 0;
};

/// No delay, congestion control, time limits: for both ends of a connection.
void prepareSocket(int fd, const TcpOptions& options);

}  // namespace isthmus
