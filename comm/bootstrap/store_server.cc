#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <map>
#include <thread>

#include "comm/base/assert.hpp"
#include "comm/base/descriptors.hpp"
#include "comm/base/log.hpp"
#include "comm/bootstrap/authenticate.hpp"
#include "comm/bootstrap/store_session.hpp"
#include "comm/bootstrap/store_tcp.hpp"

namespace isthmus {

namespace {

/// How long a stranger may take to prove itself, and how many may try at a time: enough for a job
/// that starts at once, too few to exhaust descriptors.
constexpr auto kHandshakeLimit = std::chrono::seconds(5);
constexpr int kMostStrangers = 64;
constexpr int kTriesForCommonPort = 16;

}  // namespace

/// The server's thread and all that it owns.
class TcpStoreServer::Loop {
public:
    Loop(std::vector<UniqueFd> listeners, const JobKey& key)
        : listeners_(std::move(listeners)),
          key_(key),
          instance_(makeNonce()),
          wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
        ISTHMUS_ASSERT(wake_.isOpen());
        // Signals belong to the program: block them here before the thread inherits the mask.
        sigset_t all;
        sigset_t before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        thread_ = std::thread([this] { run(); });
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        pthread_setname_np(thread_.native_handle(), "isthmus-store");
    }

    ~Loop() {
        const std::uint64_t one = 1;
        [[maybe_unused]] const auto put = ::write(wake_.get(), &one, sizeof one);
        thread_.join();
    }

    bool isAbandoned() const { return isAbandoned_.load(std::memory_order_relaxed); }

private:
    struct Connection {
        UniqueFd socket;
        ServerSession session;
        Deadline trustedBy;
    };
    using Connections = std::map<int, Connection>;

    void run() {
        while (waitForNews()) {
            const auto now = std::chrono::steady_clock::now();
            deliver(table_.expire(now));
            closeLateStrangers(now);
            const bool isInUse = strangers() < static_cast<int>(connections_.size());
            wasUsed_ = wasUsed_ || isInUse;
            isAbandoned_.store(wasUsed_ && !isInUse, std::memory_order_relaxed);
        }
    }

    /// False when the server ends.
    bool waitForNews() {
        std::vector<pollfd> entries{{wake_.get(), POLLIN, 0}};
        for (const auto& listener : listeners_) entries.push_back({listener.get(), POLLIN, 0});
        for (auto& [fd, connection] : connections_) {
            const bool hasOutput = !connection.session.output().empty();
            entries.push_back({fd, static_cast<short>(hasOutput ? POLLIN | POLLOUT : POLLIN), 0});
        }
        if (::poll(entries.data(), entries.size(), pollLimit()) < 0) return errno == EINTR;
        if (entries.front().revents != 0) return false;
        for (std::size_t i = 1; i < entries.size(); ++i) {
            if (entries[i].revents == 0) continue;
            if (i <= listeners_.size()) {
                acceptAll(entries[i].fd);
            } else {
                advance(entries[i].fd, entries[i].revents);
            }
        }
        return true;
    }

    int pollLimit() const {
        auto next = table_.nextDeadline();
        for (const auto& [fd, connection] : connections_) {
            if (connection.session.isTrusted()) continue;
            if (!next || connection.trustedBy < *next) next = connection.trustedBy;
        }
        if (!next) return -1;
        return static_cast<int>(std::min<std::int64_t>(timeLeft(*next).count(), 3'600'000));
    }

    void acceptAll(int listener) {
        for (;;) {
            UniqueFd socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
            if (!socket.isOpen()) {
                // Out of descriptors: give up the strangers, who hold some of them.
                const int error = errno;
                if (error == EMFILE || error == ENFILE) closeOldestStranger();
                if (spare_.turnAway(listener, error)) continue;
                return;
            }
            spare_.refill();
            if (!isOurUser(socket.get())) continue;
            if (strangers() >= kMostStrangers) closeOldestStranger();
            const int fd = socket.get();
            const auto trustedBy = std::chrono::steady_clock::now() + kHandshakeLimit;
            connections_.emplace(
                fd, Connection{std::move(socket), ServerSession(key_, instance_, makeNonce()),
                               trustedBy});
        }
    }

    void advance(int fd, short events) {
        const auto found = connections_.find(fd);
        if (found == connections_.end()) return;  // closed earlier in this round
        const bool wantsInput = (events & (POLLIN | POLLHUP | POLLERR)) != 0;
        Status status;
        if (wantsInput) status = receive(fd, found->second);
        if (status.ok()) status = flush(found->second);
        if (!status.ok()) close(fd, status);
    }

    Status receive(int fd, Connection& connection) {
        std::array<std::byte, 64 * 1024> room;
        const std::size_t most = connection.session.isTrusted() ? room.size() : 4096;
        const ssize_t got = ::recv(fd, room.data(), most, 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return {};
        if (got <= 0) return Status::peerLost("closed");
        auto requests =
            connection.session.feed(std::span(room).first(static_cast<std::size_t>(got)));
        if (!requests.ok()) return requests.status();
        for (StoreRequest& request : *requests) {
            if (table_.isWaiting(fd)) return Status::mismatch("two requests at a time");
            deliver(table_.serve(fd, std::move(request), std::chrono::steady_clock::now()));
        }
        return {};
    }

    static Status flush(Connection& connection) {
        Bytes& output = connection.session.output();
        if (output.empty()) return {};
        const ssize_t sent =
            ::send(connection.socket.get(), output.data(), output.size(), MSG_NOSIGNAL);
        if (sent < 0) {
            return errno == EAGAIN || errno == EINTR ? Status() : Status::peerLost("closed");
        }
        output.erase(output.begin(), output.begin() + sent);
        return {};
    }

    void deliver(const std::vector<StoreTable::Reply>& replies) {
        for (const auto& reply : replies) {
            const auto found = connections_.find(reply.caller);
            if (found == connections_.end()) continue;
            found->second.session.answer(reply.answer);
            // A failed send shows again as POLLERR or POLLHUP, and is treated there.
            if (const Status sent = flush(found->second); !sent.ok()) continue;
        }
    }

    int strangers() const {
        return static_cast<int>(
            std::count_if(connections_.begin(), connections_.end(),
                          [](const auto& entry) { return !entry.second.session.isTrusted(); }));
    }

    void closeOldestStranger() {
        auto oldest = connections_.end();
        for (auto entry = connections_.begin(); entry != connections_.end(); ++entry) {
            if (entry->second.session.isTrusted()) continue;
            const bool isOlder =
                oldest == connections_.end() || entry->second.trustedBy < oldest->second.trustedBy;
            if (isOlder) oldest = entry;
        }
        if (oldest != connections_.end()) {
            close(oldest->first, Status::resource("too many connections that prove nothing"));
        }
    }

    void closeLateStrangers(Deadline now) {
        std::vector<int> late;
        for (const auto& [fd, connection] : connections_) {
            if (!connection.session.isTrusted() && connection.trustedBy <= now) late.push_back(fd);
        }
        for (const int fd : late) close(fd, Status::timeout("proved nothing in time"));
    }

    void close(int fd, const Status& why) {
        const auto found = connections_.find(fd);
        if (found == connections_.end()) return;
        if (why.code() != Status::Code::kPeerLost) {
            log(LogLevel::kDebug, "the store closed a connection: " + why.what());
        }
        table_.forget(fd);
        connections_.erase(found);
    }

    std::vector<UniqueFd> listeners_;
    const JobKey key_;
    const StoreInstance instance_;
    StoreTable table_;
    Connections connections_;
    UniqueFd wake_;
    SpareDescriptor spare_;
    bool wasUsed_ = false;
    std::atomic<bool> isAbandoned_{false};  // a flag alone: orders nothing
    std::thread thread_;
};

Result<std::unique_ptr<TcpStoreServer>> TcpStoreServer::start(const std::vector<HostPort>& places,
                                                              const JobKey& key, PortRange range) {
    ISTHMUS_ASSERT(!places.empty());
    ISTHMUS_TRY(prepareAuthentication());
    Status failure;
    const bool isChosen = places.front().port != 0 || places.front().isLocalName();
    for (int i = 0; i < (isChosen ? 1 : kTriesForCommonPort); ++i) {
        std::vector<UniqueFd> listeners;
        std::vector<HostPort> taken;
        failure = {};
        for (HostPort place : places) {
            if (!taken.empty() && place.port == 0) place.port = taken.front().port;
            auto listener = listenAt(place, range);
            if (!listener.ok()) {
                failure = listener.status();
                // Among several, one that this machine does not have (yet) is left out.
                if (failure.code() == Status::Code::kInvalidArgument) continue;
                break;
            }
            taken.push_back(placeOf(*listener, place));
            listeners.push_back(std::move(*listener));
        }
        const bool isRefused = !failure.ok() && failure.code() != Status::Code::kInvalidArgument;
        if (isRefused || listeners.empty()) continue;
        auto loop = std::make_unique<Loop>(std::move(listeners), key);
        return std::unique_ptr<TcpStoreServer>(
            new TcpStoreServer(std::move(taken), std::move(loop)));
    }
    return failure.within("store");
}

Result<std::unique_ptr<TcpStoreServer>> TcpStoreServer::start(const HostPort& place,
                                                              const JobKey& key, PortRange range) {
    return start(std::vector<HostPort>{place}, key, range);
}

TcpStoreServer::TcpStoreServer(std::vector<HostPort> places, std::unique_ptr<Loop> loop)
    : places_(std::move(places)), loop_(std::move(loop)) {}

TcpStoreServer::~TcpStoreServer() = default;

bool TcpStoreServer::isAbandoned() const {
    return loop_->isAbandoned();
}

}  // namespace isthmus
