#include "tests/support/rma/stand_in_device.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "comm/base/bytes.hpp"
#include "comm/base/unique_fd.hpp"
#include "comm/bootstrap/authenticate.hpp"

namespace isthmus {

namespace {

constexpr std::size_t kInboxMessages = 64;
constexpr std::size_t kMessageBytes = 4096;

std::atomic<std::uint64_t> transferredBytes{0};

struct Region {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::byte* memory = nullptr;  // at begin

    std::byte* at(std::uint64_t address) const { return memory + (address - begin); }
    bool holds(std::uint64_t address, std::uint64_t bytes) const {
        return address >= begin && address <= end && bytes <= end - address;
    }
};

/// What others can reach of a device. Everything is guarded by its mutex.
struct Port {
    std::mutex mutex;
    bool isOpen = true;
    std::deque<Bytes> inbox;
    std::map<std::string, Region> regions;     // by key
    std::set<const Port*> refused;             // who was disconnected
    std::vector<std::weak_ptr<Port>> waiting;  // for room in the inbox
    bool isArmed = false;
    bool hasNews = false;  // beside the inbox
    UniqueFd event{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};

    /// With the mutex held.
    void wake() {
        const std::uint64_t one = 1;
        if (std::exchange(isArmed, false)) (void)!::write(event.get(), &one, sizeof(one));
    }
    void notify() {
        const std::lock_guard lock(mutex);
        hasNews = true;
        wake();
    }
};

struct Ports {
    std::mutex mutex;
    std::map<std::string, std::weak_ptr<Port>> byAddress;
};

Ports& allPorts() {
    static Ports ports;
    return ports;
}

std::string randomText() {
    return toText(makeNonce());
}

class StandInDevice final : public RmaDevice {
public:
    StandInDevice() : port_(std::make_shared<Port>()), address_(randomText()) {
        limits_.messageBytes = kMessageBytes;
        limits_.transferBytes = 100'000;
        const std::lock_guard lock(allPorts().mutex);
        allPorts().byAddress[address_] = port_;
    }
    ~StandInDevice() override {
        {
            const std::lock_guard lock(allPorts().mutex);
            allPorts().byAddress.erase(address_);
        }
        std::vector<std::weak_ptr<Port>> waiting;
        {
            const std::lock_guard lock(port_->mutex);
            port_->isOpen = false;
            waiting = std::move(port_->waiting);
        }
        notifyAll(waiting);
        for (const auto& [id, peer] : peers_) peer.port->notify();
    }

    std::string_view name() const override { return "stand-in"; }
    std::string describe() const override { return "memory of this process"; }
    const RmaLimits& limits() const override { return limits_; }
    Bytes address() const override { return toBytes(address_); }

    Result<RmaPeer> connect(std::span<const std::byte> address) override {
        const std::lock_guard lock(allPorts().mutex);
        const auto found = allPorts().byAddress.find(toText(address));
        const auto port = found == allPorts().byAddress.end() ? nullptr : found->second.lock();
        if (!port) return Status::peerLost("nobody has that address");
        const RmaPeer id{++lastId_};
        peers_[id].port = port;
        const std::lock_guard own(port_->mutex);
        port_->refused.erase(port.get());
        return id;
    }
    void disconnect(RmaPeer id, Ending) override {
        Peer& peer = peers_.at(id);
        peer.isEnding = true;  // everything taken was delivered at once
        const std::lock_guard lock(port_->mutex);
        port_->refused.insert(peer.port.get());
    }

    Result<RmaRegion> registerMemory(std::byte* address, std::size_t bytes) override {
        const auto begin = reinterpret_cast<std::uint64_t>(address);
        const std::string key = randomText();
        const std::lock_guard lock(port_->mutex);
        const RmaRegion id{++lastId_};
        port_->regions[key] = {begin, begin + bytes, address};
        keys_[id] = key;
        return id;
    }
    Bytes key(RmaRegion region) const override {
        const std::lock_guard lock(port_->mutex);
        return toBytes(keys_.at(region));
    }
    void deregister(RmaRegion region) override {
        const std::lock_guard lock(port_->mutex);
        port_->regions.erase(keys_.at(region));
        keys_.erase(region);
    }
    Result<RmaKey> importKey(RmaPeer, std::span<const std::byte> key) override {
        if (key.size() != sizeof(Nonce)) return Status::mismatch("no key");
        const RmaKey id{++lastImported_};
        imported_[id] = toText(key);
        return id;
    }
    void dropKey(RmaKey key) override { imported_.erase(key); }

    RmaPost post(RmaPeer id, std::span<const iovec> pieces) override {
        Peer& peer = peers_.at(id);
        if (peer.isEnding) return RmaPost::kGone;
        const std::lock_guard lock(peer.port->mutex);
        if (!peer.port->isOpen || peer.port->refused.contains(port_.get())) return RmaPost::kGone;
        if (peer.port->inbox.size() >= kInboxMessages) {
            peer.port->waiting.push_back(port_);
            return RmaPost::kFull;
        }
        Bytes message;
        for (const iovec& piece : pieces) {
            append(message, {static_cast<const std::byte*>(piece.iov_base), piece.iov_len});
        }
        peer.port->inbox.push_back(std::move(message));
        peer.port->wake();
        return RmaPost::kTaken;
    }
    RmaPost put(RmaPeer id, const RmaTransfer& transfer) override {
        return move(id, transfer, [](std::byte* local, std::byte* remote, std::size_t bytes) {
            std::memcpy(remote, local, bytes);
        });
    }
    RmaPost get(RmaPeer id, const RmaTransfer& transfer) override {
        return move(id, transfer, [](std::byte* local, const std::byte* remote, std::size_t bytes) {
            std::memcpy(local, remote, bytes);
        });
    }

    int progress(RmaListener& listener) override {
        std::deque<Bytes> messages;
        std::vector<std::weak_ptr<Port>> waiting;
        int count = 0;
        {
            const std::lock_guard lock(port_->mutex);
            std::uint64_t ignored = 0;
            if (!port_->isArmed) (void)!::read(port_->event.get(), &ignored, sizeof(ignored));
            messages.swap(port_->inbox);
            waiting.swap(port_->waiting);
            count = std::exchange(port_->hasNews, false) ? 1 : 0;
        }
        notifyAll(waiting);
        for (const Bytes& message : messages) listener.arrived(message);
        const auto done = std::exchange(done_, {});
        for (const auto& [context, outcome] : done) listener.completed(context, outcome);
        return count + static_cast<int>(messages.size() + done.size()) + tellEnds(listener);
    }

    int eventDescriptor() const override { return port_->event.get(); }
    bool arm() override {
        const std::lock_guard lock(port_->mutex);
        if (!port_->inbox.empty() || port_->hasNews || !done_.empty()) return false;
        port_->isArmed = true;
        return true;
    }
    Time nextEvent() const override { return Time::max(); }

private:
    struct Peer {
        std::shared_ptr<Port> port;
        bool isEnding = false;
        bool hasFailed = false;
    };

    static void notifyAll(const std::vector<std::weak_ptr<Port>>& ports) {
        for (const auto& each : ports) {
            if (const auto port = each.lock()) port->notify();
        }
    }

    bool isOurs(const RmaTransfer& transfer) const {
        const std::lock_guard lock(port_->mutex);
        const auto key = keys_.find(transfer.localRegion);
        if (key == keys_.end()) return false;
        return port_->regions.at(key->second)
            .holds(reinterpret_cast<std::uint64_t>(transfer.local), transfer.bytes);
    }

    template <typename Copy>
    RmaPost move(RmaPeer id, const RmaTransfer& transfer, const Copy& copy) {
        Peer& peer = peers_.at(id);
        if (peer.isEnding) return RmaPost::kGone;
        Status outcome;
        if (!isOurs(transfer)) outcome = Status::mismatch("local memory is not registered");
        const std::lock_guard lock(peer.port->mutex);
        if (!peer.port->isOpen || peer.port->refused.contains(port_.get())) return RmaPost::kGone;
        const auto region = peer.port->regions.find(imported_.at(transfer.key));
        if (region == peer.port->regions.end() ||
            !region->second.holds(transfer.remote, transfer.bytes)) {
            outcome = Status::mismatch("remote memory is not registered");
        }
        if (outcome.ok()) {
            copy(transfer.local, region->second.at(transfer.remote), transfer.bytes);
            transferredBytes += transfer.bytes;
        }
        done_.emplace_back(transfer.context, outcome);
        return RmaPost::kTaken;
    }

    int tellEnds(RmaListener& listener) {
        std::vector<RmaPeer> ended;
        std::vector<RmaPeer> failed;
        for (auto& [id, peer] : peers_) {
            if (peer.isEnding) {
                ended.push_back(id);
            } else if (!peer.hasFailed) {
                const std::lock_guard lock(peer.port->mutex);
                if (!peer.port->isOpen) failed.push_back(id);
            }
        }
        for (const RmaPeer id : failed) {
            peers_.at(id).hasFailed = true;
            listener.failed(id, Status::peerLost("its device is gone"));
        }
        for (const RmaPeer id : ended) {
            peers_.erase(id);
            listener.disconnected(id);
        }
        return static_cast<int>(failed.size() + ended.size());
    }

    const std::shared_ptr<Port> port_;
    const std::string address_;
    RmaLimits limits_;
    std::uint64_t lastId_ = 0;
    std::uint64_t lastImported_ = 0;
    std::map<RmaPeer, Peer> peers_;
    std::map<RmaRegion, std::string> keys_;  // guarded by the port's mutex
    std::map<RmaKey, std::string> imported_;
    std::vector<std::pair<std::uint64_t, Status>> done_;
};

}  // namespace

std::uint64_t standInTransferredBytes() {
    return transferredBytes;
}

std::unique_ptr<RmaDevice> makeStandInDevice() {
    return std::make_unique<StandInDevice>();
}

}  // namespace isthmus
