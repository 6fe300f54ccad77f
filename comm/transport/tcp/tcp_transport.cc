#include "comm/transport/tcp/tcp_transport.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>

#include "comm/base/bytes.hpp"
#include "comm/base/descriptors.hpp"
#include "comm/transport/link_table.hpp"
#include "comm/transport/tcp/tcp_link.hpp"
#include "comm/transport/watched_socket.hpp"

namespace isthmus {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// Looking at sockets costs a system call (0.2-0.3 us): every time when somebody waits for them,
/// else this often.
constexpr Time kIdleLook = microseconds(200);
/// The same for the door, where nobody waits for microseconds.
constexpr Time kDoorLook = microseconds(50);
constexpr Time kIdleDoorLook = milliseconds(1);
/// How precisely the time limit of strangers is kept while everybody sleeps.
constexpr Time kStrangersLook = milliseconds(250);

class TcpTransport final : public Transport {
public:
    TcpTransport(const TcpOptions& options, SleepSet& sleepSet, TransportListener& listener)
        : options_(options),
          epoll_(::epoll_create1(EPOLL_CLOEXEC)),
          shared_{options_, listener, sleepSet, epoll_.get(), nullptr} {}

    ~TcpTransport() override { links_.clear(); }

    Status open(const ProcessId& self, const JobKey& key) {
        if (!epoll_.isOpen())
            return Status::resource("tcp: no epoll descriptor: " + causeOf(errno));
        auto door = TcpDoor::open(
            options_, self, key, shared_.sleepSet,
            [this](const ProcessId& peer, UniqueFd fd) { links_.welcome(peer, std::move(fd)); });
        if (!door.ok()) return door.status();
        door_ = std::move(*door);
        shared_.door = door_.get();
        key_ = key;
        return {};
    }

    std::string_view name() const override { return "tcp"; }

    Bytes address() const override {
        ByteWriter writer;
        writer.put(static_cast<std::uint8_t>(options_.cards.size()));
        for (std::size_t card = 0; card < options_.cards.size(); ++card)
            writer.put(std::string_view(options_.cards[card].address)).put(door_->port(card));
        writer.put(static_cast<std::uint32_t>(::getpid())).put(key_.span());
        return writer.take();
    }

    Result<Endpoint*> endpoint(const ProcessId& peer, const Bytes& address) override {
        if (TcpLink* const link = links_.find(peer))
            return static_cast<Endpoint*>(&link->endpoint());
        ByteReader reader(address);
        std::vector<TcpAddress> ways(reader.get<std::uint8_t>());
        for (std::size_t card = 0; card < ways.size(); ++card) {
            ways[card].host = reader.getText();
            ways[card].port = reader.get<std::uint16_t>();
            ways[card].card = card;
        }
        const auto pid = reader.get<std::uint32_t>();
        const auto key = JobKey::fromBytes(reader.getBytes());
        if (!reader.ok() || !key || ways.empty()) {
            return Status::mismatch("tcp: an address that is none");
        }
        ways.resize(std::min(ways.size(), options_.cards.size()));
        for (TcpAddress& way : ways) way.key = *key;
        TcpLink& link =
            links_.add(peer, std::make_unique<TcpLink>(shared_, peer, std::move(ways), pid));
        return static_cast<Endpoint*>(&link.endpoint());
    }

    int progress(Time now) override {
        lastNow_ = now;
        int count = lookAtDoor(now);
        count += lookAtSockets(now);
        for (const auto& [peer, link] : links_) count += link->progress(now);
        return count;
    }

    std::vector<CardCounters> cards() const override {
        std::vector<CardCounters> cards;
        for (const TcpOptions::Card& card : options_.cards)
            cards.push_back({card.interfaceName, 0, 0});
        for (const auto& [peer, link] : links_) link->count(cards);
        return cards;
    }

    bool prepareSleep() override {
        mustLook_ = true;  // whoever wakes us did it through a descriptor
        for (const auto& [peer, link] : links_) {
            if (link->hasWork()) return false;
        }
        const int atDoor = lookAtDoor(lastNow_);
        return atDoor + lookAtSockets(lastNow_) == 0;
    }
    void wakeUp() override { mustLook_ = true; }

    Time nextEvent() const override {
        if (door_->isConnecting()) return lastNow_ + milliseconds(1);
        for (const auto& [peer, link] : links_) {
            if (link->isHolding()) return lastNow_ + milliseconds(1);
        }
        if (door_->hasStrangers()) return lastNow_ + kStrangersLook;
        Time within = Time::max();
        for (const auto& [peer, link] : links_) within = std::min(within, link->lookWithin());
        return within == Time::max() ? within : lastNow_ + within;
    }

    void close(Time deadline) override {
        sayGoodbye(links_, deadline,
                   [] { ::poll(nullptr, 0, 1); });  // the kernel's buffers are full
        door_->close();
        links_.forgetGuests();
        for (const auto& [peer, link] : links_) {
            link->leave();
            link->endpoint().shut(Status::aborted("transport tcp was closed"));
            link->endpoint().complete();
        }
    }

private:
    int lookAtDoor(Time now) {
        const Time pause = door_->isConnecting() ? kDoorLook : kIdleDoorLook;
        if (!mustLook_ && now - doorLookedAt_ < pause) return 0;
        doorLookedAt_ = now;
        return door_->poll();
    }

    int lookAtSockets(Time now) {
        const bool isWaitedFor = [&] {
            for (const auto& [peer, link] : links_) {
                if (link->isExpecting()) return true;
            }
            return false;
        }();
        if (!mustLook_ && !isWaitedFor && now - socketsLookedAt_ < kIdleLook) return 0;
        mustLook_ = false;
        socketsLookedAt_ = now;
        return lookAt<const TcpSocket>(epoll_.get(),
                                       [](const TcpSocket* socket, std::uint32_t events) {
                                           socket->link->happened(*socket, events);
                                       });
    }

    const TcpOptions options_;
    const UniqueFd epoll_;
    TcpShared shared_;
    JobKey key_;  // of our door; who knows our address may come in
    std::unique_ptr<TcpDoor> door_;
    LinkTable<TcpLink, UniqueFd> links_{kMostTcpCards};
    Time lastNow_{1};
    Time doorLookedAt_{0};
    Time socketsLookedAt_{0};
    bool mustLook_ = true;
};

}  // namespace

Result<std::unique_ptr<Transport>> makeTcpTransport(const TcpOptions& options,
                                                    const ProcessId& self, const JobKey& key,
                                                    SleepSet& sleepSet,
                                                    TransportListener& listener) {
    auto transport = std::make_unique<TcpTransport>(options, sleepSet, listener);
    if (Status failure = transport->open(self, key); !failure.ok()) return failure;
    return std::unique_ptr<Transport>(std::move(transport));
}

}  // namespace isthmus
