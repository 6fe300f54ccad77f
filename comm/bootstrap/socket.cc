#include "comm/bootstrap/socket.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>

#include "comm/base/descriptors.hpp"
#include "comm/bootstrap/port_holder.hpp"

namespace isthmus {

namespace {

/// Any socket address with its length.
struct Address {
    sockaddr_storage storage{};
    socklen_t length = 0;

    const sockaddr* raw() const { return reinterpret_cast<const sockaddr*>(&storage); }
    sockaddr* raw() { return reinterpret_cast<sockaddr*>(&storage); }
    int family() const { return storage.ss_family; }
    void setPort(std::uint16_t port) {
        // sin_port and sin6_port lie at the same place (ip(7), ipv6(7)).
        reinterpret_cast<sockaddr_in*>(&storage)->sin_port = htons(port);
    }
};

Address localAddress(const std::string& name) {
    Address address;
    auto* unixAddress = reinterpret_cast<sockaddr_un*>(&address.storage);
    unixAddress->sun_family = AF_UNIX;
    // '@' stands for the zero byte that marks an abstract name.
    std::memcpy(unixAddress->sun_path + 1, name.data() + 1, name.size() - 1);
    address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    return address;
}

Result<std::vector<Address>> resolve(const HostPort& place) {
    if (place.isLocalName()) return std::vector<Address>{localAddress(place.host)};
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICSERV;
    addrinfo* found = nullptr;
    const std::string port = std::to_string(place.port);
    const int error = ::getaddrinfo(place.host.c_str(), port.c_str(), &hints, &found);
    if (error != 0) {
        return Status::configuration("cannot resolve \"" + place.host +
                                     "\": " + ::gai_strerror(error));
    }
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);
    std::vector<Address> addresses;
    for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
        Address address;
        if (entry->ai_addrlen > sizeof address.storage) continue;
        std::memcpy(&address.storage, entry->ai_addr, entry->ai_addrlen);
        address.length = entry->ai_addrlen;
        addresses.push_back(address);
    }
    return addresses;
}

/// Without port; empty for local names.
std::string numericText(const Address& address) {
    char text[NI_MAXHOST] = "";
    if (address.family() == AF_UNIX) return {};
    ::getnameinfo(address.raw(), address.length, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
    return text;
}

UniqueFd openSocket(int family) {
    return UniqueFd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

/// The error of bind or listen, 0 when the socket listens.
int tryListen(const UniqueFd& listener, const Address& address) {
    const int on = 1;
    if (address.family() != AF_UNIX) {
        // Only past connections are ignored so; a live listener still conflicts (socket(7)).
        ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    }
    if (address.family() == AF_INET6) {
        ::setsockopt(listener.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    }
    if (::bind(listener.get(), address.raw(), address.length) != 0) return errno;
    constexpr int kBacklog = 1024;
    return ::listen(listener.get(), kBacklog) == 0 ? 0 : errno;
}

Status cannotListen(const HostPort& place, int error) {
    std::string what = "cannot listen at " + toText(place) + ": " + causeOf(error);
    if (error == EADDRINUSE && !place.isLocalName()) {
        const std::string holder = portHolder(place.port);
        what += holder.empty() ? ", its holder cannot be read" : ", held by " + holder;
    }
    return error == EADDRNOTAVAIL ? Status::invalidArgument(std::move(what))
                                  : Status::configuration(std::move(what));
}

/// True once `events` are there.
bool waitFor(int fd, short events, Deadline deadline) {
    for (;;) {
        pollfd entry{fd, events, 0};
        const auto limit = std::min<std::int64_t>(timeLeft(deadline).count(), 60'000);
        const int ready = ::poll(&entry, 1, static_cast<int>(limit));
        if (ready > 0) return true;
        if (ready < 0 && errno != EINTR) return true;  // the next call says what is wrong
        if (ready == 0 && timeLeft(deadline).count() == 0) return false;
    }
}

/// The error of the connection attempt, 0 when it stands.
int tryConnect(const UniqueFd& connection, const Address& address, Deadline deadline) {
    if (::connect(connection.get(), address.raw(), address.length) == 0) return 0;
    if (errno != EINPROGRESS && errno != EINTR) return errno;
    if (!waitFor(connection.get(), POLLOUT, deadline)) return ETIMEDOUT;
    int error = 0;
    socklen_t length = sizeof error;
    ::getsockopt(connection.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    return error;
}

}  // namespace

std::chrono::milliseconds timeLeft(Deadline deadline) {
    const auto left = deadline - std::chrono::steady_clock::now();
    return std::max(std::chrono::ceil<std::chrono::milliseconds>(left),
                    std::chrono::milliseconds(0));
}

Result<UniqueFd> listenAt(const HostPort& place, PortRange range) {
    auto addresses = resolve(place);
    if (!addresses.ok()) return addresses.status();
    if (addresses->empty()) return cannotListen(place, EADDRNOTAVAIL);
    Address& address = addresses->front();
    const bool takesAny = !place.isLocalName() && place.port == 0 && range.ports() > 0;
    int error = 0;
    for (int i = 0; i < (takesAny ? range.ports() : 1); ++i) {
        if (takesAny) address.setPort(static_cast<std::uint16_t>(range.first + i));
        UniqueFd listener = openSocket(address.family());
        if (!listener.isOpen()) {
            return Status::resource("cannot open a socket: " + causeOf(errno));
        }
        error = tryListen(listener, address);
        if (error == 0) return listener;
        if (error != EADDRINUSE) break;
    }
    if (takesAny && error == EADDRINUSE) {
        return Status::configuration("every port of ISTHMUS_PORT_RANGE " +
                                     std::to_string(range.first) + "-" +
                                     std::to_string(range.last) + " is in use at " + place.host +
                                     ": it has " + std::to_string(range.ports()) +
                                     ", each rank on this node needs one, and a store without a "
                                     "port of its own (a unique id's, isthmus run's) one more");
    }
    return cannotListen(place, error);
}

HostPort placeOf(const UniqueFd& listener, const HostPort& asked) {
    Address address;
    address.length = sizeof address.storage;
    if (asked.isLocalName() || ::getsockname(listener.get(), address.raw(), &address.length) != 0) {
        return asked;
    }
    return {asked.host, ntohs(reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_port)};
}

Result<UniqueFd> connectTo(const HostPort& place, Deadline deadline) {
    const auto addresses = resolve(place);
    if (!addresses.ok()) return addresses.status();
    int error = EADDRNOTAVAIL;
    for (const Address& address : *addresses) {
        UniqueFd connection = openSocket(address.family());
        if (!connection.isOpen()) {
            error = errno;
            continue;
        }
        error = tryConnect(connection, address, deadline);
        if (error != 0) continue;
        if (!isOurUser(connection.get())) {
            return Status::configuration(toText(place) + " is held by another user");
        }
        const int on = 1;
        if (address.family() != AF_UNIX) {
            ::setsockopt(connection.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        }
        return connection;
    }
    return Status::peerLost("cannot connect to " + toText(place) + ": " + causeOf(error));
}

Result<std::vector<std::string>> numericAddresses(const std::string& host) {
    const auto addresses = resolve({host, 0});
    if (!addresses.ok()) return addresses.status();
    if (addresses->empty()) return Status::configuration("\"" + host + "\" has no address");
    std::vector<std::string> texts;
    for (const Address& address : *addresses) {
        std::string text = numericText(address);
        if (std::find(texts.begin(), texts.end(), text) == texts.end()) {
            texts.push_back(std::move(text));
        }
    }
    return texts;
}

std::string localAddressOf(const UniqueFd& connection) {
    Address address;
    address.length = sizeof address.storage;
    if (::getsockname(connection.get(), address.raw(), &address.length) != 0) return {};
    return numericText(address);
}

bool isOurUser(int connection) {
    Address address;
    address.length = sizeof address.storage;
    if (::getsockname(connection, address.raw(), &address.length) != 0) return false;
    if (address.family() != AF_UNIX) return true;
    ucred other{};
    socklen_t length = sizeof other;
    return ::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &other, &length) == 0 &&
           other.uid == ::geteuid();
}

Status sendAll(const UniqueFd& connection, std::span<const std::byte> data, Deadline deadline) {
    while (!data.empty()) {
        const ssize_t sent = ::send(connection.get(), data.data(), data.size(), MSG_NOSIGNAL);
        if (sent >= 0) {
            data = data.subspan(static_cast<std::size_t>(sent));
        } else if (errno == EAGAIN) {
            if (!waitFor(connection.get(), POLLOUT, deadline)) {
                return Status::timeout("sending stalled");
            }
        } else if (errno != EINTR) {
            return Status::peerLost("the connection broke: " + causeOf(errno));
        }
    }
    return {};
}

Result<std::size_t> receiveSome(const UniqueFd& connection, std::span<std::byte> room,
                                Deadline deadline) {
    for (;;) {
        const ssize_t got = ::recv(connection.get(), room.data(), room.size(), 0);
        if (got > 0) return static_cast<std::size_t>(got);
        if (got == 0) return Status::peerLost("the other end closed the connection");
        if (errno == EAGAIN) {
            if (!waitFor(connection.get(), POLLIN, deadline)) {
                return Status::timeout("the other end says nothing");
            }
        } else if (errno != EINTR) {
            return Status::peerLost("the connection broke: " + causeOf(errno));
        }
    }
}

}  // namespace isthmus
