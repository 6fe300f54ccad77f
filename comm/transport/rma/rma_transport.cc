#include "comm/transport/rma/rma_transport.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "comm/base/bytes.hpp"
#include "comm/base/descriptors.hpp"
#include "comm/bootstrap/authenticate.hpp"
#include "comm/transport/link_table.hpp"
#include "comm/transport/rma/rma_link.hpp"
#include "comm/transport/watched_socket.hpp"

namespace isthmus {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// Sockets bring new connections and ends only: one look, a system call of 0.3 us, per this time is
/// enough; more often while a connection is being made.
constexpr Time kLook = microseconds(200);
constexpr Time kLookWhenConnecting = microseconds(20);
constexpr Time kStrangersLook = milliseconds(250);
/// How often a device is asked that cannot wake anybody.
constexpr Time kDeviceLook = microseconds(100);
/// The bits of a route that say whose it is; the others, which nobody guesses, that it may be used.
constexpr std::uint64_t kRouteIndex = 0xfffff;
/// At the very end: for the device to let go of memory.
constexpr Time kLastEnding = milliseconds(500);

class RmaTransport final : public Transport, private RmaListener {
public:
    RmaTransport(std::unique_ptr<RmaDevice> device, RmaOptions options, SleepSet& sleepSet,
                 TransportListener& listener)
        : device_(std::move(device)),
          options_(std::move(options)),
          epoll_(::epoll_create1(EPOLL_CLOEXEC)),
          shared_{*device_, options_, listener, sleepSet, epoll_.get(), nullptr, {}} {}

    ~RmaTransport() override {
        const SteadyClock clock;
        isClosing_ = true;
        endDevices(RmaDevice::Ending::kNow, clock, clock.now() + kLastEnding);
        if (deviceEvents_ >= 0) shared_.sleepSet.remove(deviceEvents_);
        links_.clear();
    }

    Status open(const ProcessId& self, const JobKey& key) {
        if (!epoll_.isOpen()) return Status::resource("no epoll descriptor: " + causeOf(errno));
        options_.door.purpose = Purpose::kRemoteMemory;
        auto door = TcpDoor::open(
            options_.door, self, key, shared_.sleepSet,
            [this](const ProcessId& peer, UniqueFd fd) { links_.welcome(peer, std::move(fd)); });
        if (!door.ok()) return door.status();
        door_ = std::move(*door);
        shared_.door = door_.get();
        key_ = key;
        deviceEvents_ = device_->eventDescriptor();
        if (deviceEvents_ >= 0) shared_.sleepSet.add(deviceEvents_);
        return {};
    }

    std::string_view name() const override { return device_->name(); }

    Bytes address() const override {
        ByteWriter writer;
        writer.put(device_->name()).put(std::string_view(options_.door.cards.front().address));
        writer.put(door_->port()).put(static_cast<std::uint32_t>(::getpid())).put(key_.span());
        writer.put(std::span<const std::byte>(device_->address()));
        return writer.take();
    }

    Result<Endpoint*> endpoint(const ProcessId& peer, const Bytes& address) override {
        if (RmaLink* const link = links_.find(peer))
            return static_cast<Endpoint*>(&link->endpoint());
        Result<RmaPlace> place = placeFrom(address);
        if (!place.ok()) return place.status();
        if (routed_.size() > kRouteIndex)
            return Status::resource(std::string(name()) + ": too many peers");
        RmaLink& link = links_.add(
            peer, std::make_unique<RmaLink>(shared_, peer, std::move(*place), newRoute()));
        routed_.push_back(&link);
        return static_cast<Endpoint*>(&link.endpoint());
    }

    int progress(Time now) override {
        now_ = now;
        int count = 0;
        // What was posted leaves before the look for what has come.
        for (std::size_t at = 0; at < routed_.size(); ++at) count += routed_[at]->write();
        count += moveDevice();
        count += lookAtSockets();
        for (std::size_t at = 0; at < routed_.size(); ++at) count += routed_[at]->progress(now);
        return count;
    }

    bool prepareSleep() override {
        mustLook_ = true;  // whoever wakes us did it through a descriptor
        for (const auto& [peer, link] : links_) {
            if (link->hasWork()) return false;
        }
        return lookAtSockets() == 0 && device_->arm();
    }
    void wakeUp() override { mustLook_ = true; }

    std::vector<CardCounters> cards() const override { return {}; }

    Time nextEvent() const override {
        bool hasDevice = false;
        for (const auto& [peer, link] : links_) {
            if (link->isWaiting() || link->isConnecting()) return now_ + milliseconds(1);
            hasDevice = hasDevice || !link->hasDeviceEnded();
        }
        if (door_->isConnecting()) return now_ + milliseconds(1);
        if (deviceEvents_ < 0 && hasDevice) return now_ + kDeviceLook;
        const Time next = device_->nextEvent();
        return door_->hasStrangers() ? std::min(next, now_ + kStrangersLook) : next;
    }

    void close(Time deadline) override {
        const SteadyClock clock;
        isClosing_ = true;
        sayGoodbye(links_, deadline, [this] { moveDeviceOrWait(); });
        endDevices(RmaDevice::Ending::kDelivered, clock, deadline);
        for (const auto& [peer, link] : links_) {
            if (!link->hasDeviceEnded()) {
                device_->disconnect(link->devicePeer(), RmaDevice::Ending::kNow);
            }
        }
        endDevices(RmaDevice::Ending::kNow, clock, clock.now() + kLastEnding);
        door_->close();
        links_.forgetGuests();
        const Status why = Status::aborted("transport " + std::string(name()) + " was closed");
        for (const auto& [peer, link] : links_) link->leave(why);
    }

private:
    /// Random, except for the place of the link in `routed_`.
    std::uint64_t newRoute() const {
        const Nonce nonce = makeNonce();
        std::uint64_t route = 0;
        std::memcpy(&route, nonce.data(), sizeof(route));
        return (route & ~kRouteIndex) | routed_.size();
    }

    Result<RmaPlace> placeFrom(const Bytes& address) const {
        ByteReader reader(address);
        const std::string kind = reader.getText();
        RmaPlace place;
        place.door.host = reader.getText();
        place.door.port = reader.get<std::uint16_t>();
        place.pid = reader.get<std::uint32_t>();
        const auto key = JobKey::fromBytes(reader.getBytes());
        const auto device = reader.getBytes();
        if (!reader.ok() || !key || kind != name()) {
            return Status::mismatch(std::string(name()) + ": an address that is none");
        }
        place.door.key = *key;
        place.device.assign(device.begin(), device.end());
        return place;
    }

    int moveDevice() {
        const int happened = device_->progress(*this);
        if (happened > 0) {
            for (const auto& [peer, link] : links_) link->refill();
        }
        return happened;
    }

    void arrived(std::span<const std::byte> message) override {
        RmaMessageHeader header;
        if (isClosing_ || message.size() < sizeof(header)) return;
        std::memcpy(&header, message.data(), sizeof(header));
        const std::uint64_t index = header.route & kRouteIndex;
        // Else it is of nobody who proved the key.
        if (index >= routed_.size() || routed_[index]->incomingRoute() != header.route) return;
        routed_[index]->arrived(header.sequence, message.subspan(sizeof(header)));
    }
    void completed(std::uint64_t context, const Status& outcome) override {
        const auto found = shared_.puts.underWay.find(context);
        if (found == shared_.puts.underWay.end()) return;
        const RmaPut put = found->second;
        shared_.puts.underWay.erase(found);
        put.link->putEnded(put, outcome);
    }
    void failed(RmaPeer peer, const Status& why) override {
        if (RmaLink* const link = linkOf(peer)) link->broke(why);
    }
    void disconnected(RmaPeer peer) override {
        if (RmaLink* const link = linkOf(peer)) link->deviceEnded();
    }
    RmaLink* linkOf(RmaPeer peer) {
        for (const auto& [id, link] : links_) {
            if (link->devicePeer() == peer) return link.get();
        }
        return nullptr;
    }

    int lookAtSockets() {
        if (!mustLook_ && now_ - lookedAt_ < pause_) return 0;
        mustLook_ = false;
        lookedAt_ = now_;
        int count = door_->poll();
        count += lookAt<const RmaSocket>(epoll_.get(), [](const RmaSocket* socket, std::uint32_t) {
            socket->link->happened(*socket);
        });
        const bool isConnecting = door_->hasStrangers() ||
                                  std::any_of(links_.begin(), links_.end(), [](const auto& each) {
                                      return each.second->isConnecting();
                                  });
        pause_ = isConnecting ? kLookWhenConnecting : kLook;
        return count;
    }

    void moveDeviceOrWait() {
        if (moveDevice() == 0) ::poll(nullptr, 0, 1);
    }

    void endDevices(RmaDevice::Ending ending, const Clock& clock, Time deadline) {
        for (const auto& [peer, link] : links_) link->endDevice(ending);
        const auto hasEnded = [](const auto& each) { return each.second->hasDeviceEnded(); };
        while (!std::all_of(links_.begin(), links_.end(), hasEnded) && clock.now() < deadline) {
            moveDeviceOrWait();
        }
    }

    const std::unique_ptr<RmaDevice> device_;
    RmaOptions options_;
    const UniqueFd epoll_;
    RmaShared shared_;
    JobKey key_;  // of our door; who knows our address may come in
    std::unique_ptr<TcpDoor> door_;
    int deviceEvents_ = -1;
    LinkTable<RmaLink, UniqueFd> links_;
    std::vector<RmaLink*> routed_;  // by the index in their routes
    Time now_{1};
    Time lookedAt_{0};
    Time pause_ = kLookWhenConnecting;
    bool mustLook_ = true;
    bool isClosing_ = false;
};

}  // namespace

Result<std::unique_ptr<Transport>> makeRmaTransport(std::unique_ptr<RmaDevice> device,
                                                    RmaOptions options, const ProcessId& self,
                                                    const JobKey& key, SleepSet& sleepSet,
                                                    TransportListener& listener) {
    const std::string name(device->name());
    auto transport =
        std::make_unique<RmaTransport>(std::move(device), std::move(options), sleepSet, listener);
    if (Status failure = transport->open(self, key); !failure.ok()) return failure.within(name);
    return std::unique_ptr<Transport>(std::move(transport));
}

}  // namespace isthmus
