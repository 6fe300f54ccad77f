#include "comm/transport/tcp/tcp_transport.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>

#include "comm/base/bytes.hpp"
#include "comm/base/descriptors.hpp"
#include "comm/transport/tcp/tcp_link.hpp"

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
/// Connections of peers that this process has no endpoint for yet.
constexpr std::size_t kMostEarly = 4096;

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
            [this](const ProcessId& peer, UniqueFd fd) { accepted(peer, std::move(fd)); });
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
        auto found = links_.find(peer);
        if (found == links_.end()) {
            ByteReader reader(address);
            std::vector<TcpAddress> ways(reader.get<std::uint8_t>());
            for (std::size_t card = 0; card < ways.size(); ++card) {
                ways[card].host = reader.getText();
                ways[card].port = reader.get<std::uint16_t>();
                ways[card].card = card;
            }
            const auto pid = reader.get<std::uint32_t>();
            const auto key = JobKey::fromBytes(reader.getBytes());
            if (!reader.ok() || !key || ways.empty())
                return Status::mismatch("tcp: an address that is none");
            ways.resize(std::min(ways.size(), options_.cards.size()));
            for (TcpAddress& way : ways) way.key = *key;
            found =
                links_.emplace(peer, std::make_unique<TcpLink>(shared_, peer, std::move(ways), pid))
                    .first;
            const auto [first, last] = early_.equal_range(peer);
            for (auto early = first; early != last; ++early)
                found->second->takeIncoming(std::move(early->second));
            early_.erase(first, last);
        }
        return static_cast<Endpoint*>(&found->second->endpoint());
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
        const SteadyClock clock;
        flush(clock, deadline);
        for (const auto& [peer, link] : links_) {
            if (link->endpoint().state() == Endpoint::State::kOpen) link->endpoint().sayGoodbye();
        }
        flush(clock, deadline);
        door_->close();
        early_.clear();
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
        std::array<epoll_event, 64> events;
        const int ready =
            ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
        for (int at = 0; at < ready; ++at) {
            const auto& socket = *static_cast<const TcpSocket*>(events[at].data.ptr);
            socket.link->happened(socket, events[at].events);
        }
        return std::max(ready, 0);
    }

    void accepted(const ProcessId& peer, UniqueFd fd) {
        if (const auto found = links_.find(peer); found != links_.end()) {
            found->second->takeIncoming(std::move(fd));  // a second one is closed
        } else if (early_.size() < kMostEarly) {
            early_.emplace(peer, std::move(fd));
        }
    }

    void flush(const Clock& clock, Time deadline) {
        while (true) {
            bool isBusy = false;
            for (const auto& [peer, link] : links_) isBusy = link->flush() || isBusy;
            if (!isBusy || clock.now() >= deadline) return;
            ::poll(nullptr, 0, 1);  // the kernel's buffers are full
        }
    }

    const TcpOptions options_;
    const UniqueFd epoll_;
    TcpShared shared_;
    JobKey key_;  // of our door; who knows our address may come in
    std::unique_ptr<TcpDoor> door_;
    std::multimap<ProcessId, UniqueFd> early_;
    std::map<ProcessId, std::unique_ptr<TcpLink>> links_;
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
