#include "comm/transport/shm/shm_transport.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <list>
#include <vector>

#include "comm/base/bytes.hpp"
#include "comm/base/descriptors.hpp"
#include "comm/base/log.hpp"
#include "comm/bootstrap/authenticate.hpp"
#include "comm/bootstrap/socket.hpp"
#include "comm/transport/link_table.hpp"
#include "comm/transport/shm/shm_link.hpp"
#include "comm/transport/watched_socket.hpp"

namespace isthmus {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// Sockets bring new connections and ends only (doorbells while this process sleeps): one look, a
/// system call of 0.3 us, per this time is enough; more often while a connection is being made.
constexpr Time kLook = microseconds(200);
constexpr Time kLookWhenConnecting = microseconds(20);
constexpr std::size_t kMostStrangers = 64;
constexpr Time kStrangersLook = milliseconds(250);

/// Where abstract sockets of one name are one socket: one boot of one kernel, one network
/// namespace (namespaces(7): device and inode of its file).
struct Neighbourhood {
    std::string bootId;
    std::uint64_t device = 0;
    std::uint64_t inode = 0;

    bool operator==(const Neighbourhood&) const = default;

    static Neighbourhood ours() {
        Neighbourhood here;
        std::ifstream("/proc/sys/kernel/random/boot_id") >> here.bootId;
        struct stat file {};
        if (::stat("/proc/self/ns/net", &file) == 0) {
            here.device = file.st_dev;
            here.inode = file.st_ino;
        }
        return here;
    }
};

std::string randomName() {
    std::string name = "@isthmus-";
    for (const std::byte byte : makeNonce()) {
        char digits[3];
        std::snprintf(digits, sizeof(digits), "%02x", static_cast<unsigned>(byte));
        name += digits;
    }
    return name;
}

class ShmTransport final : public Transport {
public:
    ShmTransport(const ShmOptions& options, const ProcessId& self, const JobKey& key,
                 SleepSet& sleepSet, TransportListener& listener, Arena& arena)
        : options_(options),
          epoll_(::epoll_create1(EPOLL_CLOEXEC)),
          shared_{options_, self, key, listener, sleepSet, arena, 0, epoll_.get(), Time{1}},
          here_(Neighbourhood::ours()),
          socketName_(randomName()) {}

    ~ShmTransport() override {
        links_.clear();
        if (listener_.isOpen()) shared_.sleepSet.remove(listener_.get());
        // The page stays as long as the arena: peers write to it.
    }

    Status open() {
        if (!epoll_.isOpen())
            return Status::resource("shm: no epoll descriptor: " + causeOf(errno));
        if (here_.bootId.empty()) return Status::unsupported("shm: /proc is not readable");
        const Result<void*> memory = shared_.arena.allocate(sizeof(ShmPage), alignof(ShmPage));
        if (!memory.ok()) return memory.status();
        page_ = new (*memory) ShmPage{};
        shared_.pageOffset = *shared_.arena.offsetOf(page_, sizeof(ShmPage));
        Result<UniqueFd> listener = listenAt({socketName_, 0});
        if (!listener.ok()) return listener.status().within("shm");
        listener_ = std::move(*listener);
        shared_.sleepSet.add(listener_.get());
        epoll_event event{};
        event.events = EPOLLIN;
        ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener_.get(), &event);
        return {};
    }

    std::string_view name() const override { return "shm"; }

    Bytes address() const override {
        ByteWriter writer;
        writer.put(std::string_view(here_.bootId)).put(here_.device).put(here_.inode);
        writer.put(std::string_view(socketName_)).put(static_cast<std::uint32_t>(::getpid()));
        writer.put(shared_.key.span());
        return writer.take();
    }

    Result<Endpoint*> endpoint(const ProcessId& peer, const Bytes& address) override {
        if (ShmLink* const link = links_.find(peer))
            return static_cast<Endpoint*>(&link->endpoint());
        ByteReader reader(address);
        Neighbourhood there;
        there.bootId = reader.getText();
        there.device = reader.get<std::uint64_t>();
        there.inode = reader.get<std::uint64_t>();
        const std::string socketName = reader.getText();
        const auto pid = reader.get<std::uint32_t>();
        const auto key = JobKey::fromBytes(reader.getBytes());
        if (!reader.ok() || !key) return Status::mismatch("shm: an address that is none");
        if (there != here_) return Status::unsupported("shm: the peer is on another node");
        ShmLink& link =
            links_.add(peer, std::make_unique<ShmLink>(shared_, peer, socketName, pid, *key));
        return static_cast<Endpoint*>(&link.endpoint());
    }

    int progress(Time now) override {
        shared_.now = now;
        int count = 0;
        if (mustLook_ || now - lookedAt_ >= pause_) count += lookAtSockets();
        for (const auto& [peer, link] : links_) count += link->progress();
        return count;
    }

    bool prepareSleep() override {
        page_->isAsleep.store(1, std::memory_order_relaxed);
        // Pairs with the fence in ShmLink::ringDoorbell.
        std::atomic_thread_fence(std::memory_order_seq_cst);
        bool hasWork = lookAtSockets() > 0;
        for (const auto& [peer, link] : links_) hasWork = hasWork || link->hasWork();
        if (hasWork) wakeUp();
        return !hasWork;
    }
    void wakeUp() override {
        page_->isAsleep.store(0, std::memory_order_relaxed);
        mustLook_ = true;  // whoever wakes us did it through a descriptor
    }

    std::vector<CardCounters> cards() const override { return {}; }

    Time nextEvent() const override {
        for (const auto& [peer, link] : links_) {
            if (link->isConnecting() && !link->endpoint().isGone()) {
                return shared_.now + milliseconds(1);
            }
        }
        return strangers_.empty() ? Time::max() : shared_.now + kStrangersLook;
    }

    void close(Time deadline) override {
        sayGoodbye(links_, deadline, [] { ::poll(nullptr, 0, 1); });  // the rings are full
        if (listener_.isOpen()) shared_.sleepSet.remove(listener_.get());
        listener_.reset();
        strangers_.clear();
        links_.forgetGuests();
        for (const auto& [peer, link] : links_) {
            link->leave();
            link->endpoint().shut(Status::aborted("transport shm was closed"));
            link->endpoint().complete();
        }
    }

private:
    int lookAtSockets() {
        mustLook_ = false;
        lookedAt_ = shared_.now;
        lookAt<ShmSocket>(epoll_.get(), [this](ShmSocket* socket, std::uint32_t) {
            if (socket == nullptr) {
                acceptStrangers();
            } else {
                socket->hasHappened = true;
            }
        });
        int count = hearStrangers();
        bool isConnecting = !strangers_.empty();
        for (const auto& [peer, link] : links_) {
            count += link->lookAtSockets();
            isConnecting |= link->isConnecting();
        }
        pause_ = isConnecting ? kLookWhenConnecting : kLook;
        return count;
    }

    void acceptStrangers() {
        while (listener_.isOpen()) {
            UniqueFd socket(
                ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
            if (!socket.isOpen()) {
                if (spare_.turnAway(listener_.get(), errno)) continue;
                return;
            }
            spare_.refill();
            if (!isOurUser(socket.get())) continue;
            if (strangers_.size() >= kMostStrangers) strangers_.pop_front();
            strangers_.push_back(std::make_unique<ShmAccept>(shared_.key, shared_.self,
                                                             std::move(socket), shared_.sleepSet,
                                                             options_.handshakeLimit));
        }
    }

    int hearStrangers() {
        int count = 0;
        for (auto at = strangers_.begin(); at != strangers_.end();) {
            auto outcome = (*at)->poll(shared_.now);
            if (!outcome.has_value()) {
                ++at;
                continue;
            }
            at = strangers_.erase(at);
            ++count;
            if (!outcome->ok()) {
                log(LogLevel::kDebug, "shm rejected a connection: " + outcome->status().what());
                continue;
            }
            const ProcessId peer = (**outcome)->peer;
            links_.welcome(peer, std::move(***outcome));
        }
        return count;
    }

    const ShmOptions options_;
    const UniqueFd epoll_;
    ShmShared shared_;
    const Neighbourhood here_;
    const std::string socketName_;
    ShmPage* page_ = nullptr;
    UniqueFd listener_;
    SpareDescriptor spare_;
    std::list<std::unique_ptr<ShmAccept>> strangers_;
    LinkTable<ShmLink, ShmAccept::Guest> links_;
    Time pause_ = kLookWhenConnecting;
    Time lookedAt_{0};
    bool mustLook_ = true;
};

}  // namespace

Result<std::unique_ptr<Transport>> makeShmTransport(const ShmOptions& options,
                                                    const ProcessId& self, const JobKey& key,
                                                    SleepSet& sleepSet, TransportListener& listener,
                                                    Arena& arena) {
    auto transport = std::make_unique<ShmTransport>(options, self, key, sleepSet, listener, arena);
    if (Status failure = transport->open(); !failure.ok()) return failure;
    return std::unique_ptr<Transport>(std::move(transport));
}

}  // namespace isthmus
