#include "tests/support/rma/strict_device.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <random>
#include <vector>

#include "comm/base/bytes.hpp"

namespace isthmus {

namespace {

class StrictDevice final : public RmaDevice, private RmaListener {
public:
    StrictDevice(std::unique_ptr<RmaDevice> inside, const StrictOptions& options)
        : inside_(std::move(inside)), options_(options), random_(options.seed) {}

    std::string_view name() const override { return inside_->name(); }
    std::string describe() const override { return "strict " + inside_->describe(); }
    const RmaLimits& limits() const override { return inside_->limits(); }
    Bytes address() const override { return inside_->address(); }

    Result<RmaPeer> connect(std::span<const std::byte> address) override {
        const auto peer = inside_->connect(address);
        if (peer.ok()) peers_[*peer] = {};
        return peer;
    }
    void disconnect(RmaPeer id, Ending ending) override {
        Peer& peer = peers_.at(id);
        if (peer.isDisconnected) return;  // inside; here it is told later
        if (peer.ending == Phase::kInside) return inside_->disconnect(id, ending);
        peer.ending = ending == Ending::kNow ? Phase::kDropping : Phase::kDelivering;
    }

    Result<RmaRegion> registerMemory(std::byte* address, std::size_t bytes) override {
        const std::lock_guard lock(mutex_);
        if (options_.failEvery > 0 && ++registrations_ % options_.failEvery == 0) {
            return Status::resource("this registration fails");
        }
        const auto region = inside_->registerMemory(address, bytes);
        if (region.ok()) regions_[*region] = {address, bytes};
        return region;
    }
    Bytes key(RmaRegion region) const override { return inside_->key(region); }
    void deregister(RmaRegion region) override {
        const std::lock_guard lock(mutex_);
        regions_.erase(region);
        inside_->deregister(region);
    }
    Result<RmaKey> importKey(RmaPeer peer, std::span<const std::byte> key) override {
        return inside_->importKey(peer, key);
    }
    void dropKey(RmaKey key) override { inside_->dropKey(key); }

    RmaPost post(RmaPeer id, std::span<const iovec> pieces) override {
        Held held;
        held.kind = Held::kMessage;
        for (const iovec& piece : pieces) {
            append(held.message, {static_cast<const std::byte*>(piece.iov_base), piece.iov_len});
        }
        return hold(id, std::move(held));
    }
    RmaPost put(RmaPeer id, const RmaTransfer& transfer) override {
        Held held;
        held.kind = Held::kPut;
        held.transfer = transfer;
        return hold(id, std::move(held));
    }
    RmaPost get(RmaPeer id, const RmaTransfer& transfer) override {
        Held held;
        held.kind = Held::kGet;
        held.transfer = transfer;
        return hold(id, std::move(held));
    }

    int progress(RmaListener& listener) override {
        listener_ = &listener;
        int count = inside_->progress(*this);
        count += releaseOutgoing();
        count += releaseNews(listener);
        count += endPeers();
        return count;
    }

    int eventDescriptor() const override { return inside_->eventDescriptor(); }
    bool arm() override {
        const auto isBusy = [](const auto& each) {
            const Peer& peer = each.second;
            return !peer.outgoing.empty() || peer.isDisconnected ||
                   (!peer.failure.ok() && !peer.hasToldFailure) ||
                   peer.ending == Phase::kDropping || peer.ending == Phase::kDelivering;
        };
        return news_.empty() && std::none_of(peers_.begin(), peers_.end(), isBusy) &&
               inside_->arm();
    }
    Time nextEvent() const override { return inside_->nextEvent(); }

private:
    /// Something to be given to the device inside, later.
    struct Held {
        enum Kind : std::uint8_t { kMessage, kPut, kGet } kind = kMessage;
        Bytes message;
        RmaTransfer transfer;
        int delay = 0;
    };
    /// Something to be told, later.
    struct News {
        enum Kind : std::uint8_t { kArrived, kCompleted } kind = kArrived;
        Bytes message;
        std::uint64_t context = 0;
        Status outcome;
        int delay = 0;
    };
    enum class Phase : std::uint8_t { kOpen, kDelivering, kDropping, kInside };
    struct Peer {
        std::vector<Held> outgoing;
        int transfers = 0;  // inside
        int posts = 0;
        Phase ending = Phase::kOpen;
        Status failure;
        bool hasToldFailure = false;
        bool isDisconnected = false;
        int endDelay = 0;  // until all that came before is told
    };

    int anyDelay() { return static_cast<int>(random_() % (options_.longestDelay + 1)); }

    RmaPost hold(RmaPeer id, Held held) {
        Peer& peer = peers_.at(id);
        if (peer.ending != Phase::kOpen || !peer.failure.ok()) return RmaPost::kGone;
        if (static_cast<int>(peer.outgoing.size()) + peer.transfers >= options_.credits) {
            return RmaPost::kFull;
        }
        held.delay = anyDelay();
        peer.outgoing.push_back(std::move(held));
        if (++peer.posts == options_.dropAfter) {
            drop(peer, Status::peerLost("the connection broke"));
            failed(id, Status::peerLost("the connection broke"));
        }
        return RmaPost::kTaken;
    }

    bool isRegistered(const RmaTransfer& transfer) {
        const std::lock_guard lock(mutex_);
        const auto region = regions_.find(transfer.localRegion);
        if (region == regions_.end()) return false;
        const auto [address, bytes] = region->second;
        return transfer.local >= address && transfer.local + transfer.bytes <= address + bytes;
    }

    /// True: the device inside took it, or it has ended here.
    bool give(RmaPeer id, Peer& peer, const Held& held) {
        if (held.kind == Held::kMessage) {
            const iovec piece{const_cast<std::byte*>(held.message.data()), held.message.size()};
            return inside_->post(id, std::span(&piece, 1)) != RmaPost::kFull;
        }
        if (!isRegistered(held.transfer)) {
            later(held.transfer.context, Status::mismatch("local memory is not registered"));
            return true;
        }
        const RmaPost outcome = held.kind == Held::kPut ? inside_->put(id, held.transfer)
                                                        : inside_->get(id, held.transfer);
        if (outcome == RmaPost::kGone) {
            later(held.transfer.context, Status::aborted("the peer is gone"));
        } else if (outcome == RmaPost::kTaken) {
            transferPeer_[held.transfer.context] = id;
            ++peer.transfers;
        }
        return outcome != RmaPost::kFull;
    }

    /// Shuffles, and gives inside what has waited long enough.
    int releaseOutgoing() {
        int count = 0;
        for (auto& [id, peer] : peers_) {
            if (peer.ending == Phase::kDropping)
                count += drop(peer, Status::aborted("disconnected"));
            std::shuffle(peer.outgoing.begin(), peer.outgoing.end(), random_);
            std::vector<Held> rest;
            for (Held& held : peer.outgoing) {
                if (--held.delay < 0 && give(id, peer, held)) {
                    ++count;
                } else {
                    rest.push_back(std::move(held));
                }
            }
            peer.outgoing = std::move(rest);
        }
        return count;
    }

    int drop(Peer& peer, const Status& why) {
        const auto outgoing = std::exchange(peer.outgoing, {});
        for (const Held& held : outgoing) {
            if (held.kind != Held::kMessage) {
                later(held.transfer.context, why);
            }
        }
        return static_cast<int>(outgoing.size());
    }

    int releaseNews(RmaListener& listener) {
        std::shuffle(news_.begin(), news_.end(), random_);
        std::vector<News> rest;
        std::vector<News> due;
        for (News& news : std::exchange(news_, {})) {
            (--news.delay < 0 ? due : rest).push_back(std::move(news));
        }
        news_ = std::move(rest);
        for (const News& news : due) {
            if (news.kind == News::kArrived) {
                listener.arrived(news.message);
            } else {
                listener.completed(news.context, news.outcome);
            }
        }
        return static_cast<int>(due.size());
    }

    /// Ends and failures come after everything that was before them.
    int endPeers() {
        int count = 0;
        for (auto at = peers_.begin(); at != peers_.end();) {
            auto& [id, peer] = *at;
            const bool isEnding =
                peer.ending == Phase::kDelivering || peer.ending == Phase::kDropping;
            if (isEnding && peer.outgoing.empty()) {
                const bool isNow = peer.ending == Phase::kDropping;
                peer.ending = Phase::kInside;
                inside_->disconnect(id, isNow ? Ending::kNow : Ending::kDelivered);
            }
            const bool isDue = peer.endDelay-- <= 0;
            if (isDue && !peer.failure.ok() && !peer.hasToldFailure &&
                peer.ending == Phase::kOpen) {
                peer.hasToldFailure = true;
                listener_->failed(id, peer.failure);
                ++count;
            }
            if (isDue && peer.isDisconnected) {
                const RmaPeer gone = id;
                at = peers_.erase(at);
                listener_->disconnected(gone);
                ++count;
            } else {
                ++at;
            }
        }
        return count;
    }

    void later(std::uint64_t context, const Status& outcome) {
        News news;
        news.kind = News::kCompleted;
        news.context = context;
        news.outcome = outcome;
        news.delay = anyDelay();
        news_.push_back(std::move(news));
    }

    void arrived(std::span<const std::byte> message) override {
        News news;
        news.message.assign(message.begin(), message.end());
        news.delay = anyDelay();
        news_.push_back(std::move(news));
    }
    void completed(std::uint64_t context, const Status& outcome) override {
        const auto found = transferPeer_.find(context);
        --peers_.at(found->second).transfers;
        transferPeer_.erase(found);
        later(context, outcome);
    }
    void failed(RmaPeer id, const Status& why) override {
        Peer& peer = peers_.at(id);
        if (!peer.failure.ok()) return;
        peer.failure = why;
        peer.endDelay = options_.longestDelay + 2;
    }
    void disconnected(RmaPeer id) override {
        Peer& peer = peers_.at(id);
        peer.isDisconnected = true;
        peer.endDelay = options_.longestDelay + 2;
    }

    const std::unique_ptr<RmaDevice> inside_;
    const StrictOptions options_;
    std::mt19937_64 random_;
    std::map<RmaPeer, Peer> peers_;
    std::vector<News> news_;
    std::map<std::uint64_t, RmaPeer> transferPeer_;
    RmaListener* listener_ = nullptr;

    std::mutex mutex_;
    std::map<RmaRegion, std::pair<std::byte*, std::size_t>> regions_;  // guarded by mutex_
    int registrations_ = 0;                                            // guarded by mutex_
};

}  // namespace

std::unique_ptr<RmaDevice> makeStrictDevice(std::unique_ptr<RmaDevice> inside,
                                            const StrictOptions& options) {
    return std::make_unique<StrictDevice>(std::move(inside), options);
}

}  // namespace isthmus
