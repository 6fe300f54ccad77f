#include "comm/transport/sim/sim_transport.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <utility>

#include "comm/transport/sim/sim_pipe.hpp"

namespace isthmus {

struct SimHub {
    SimHub(const Clock& theClock, std::uint64_t seed, const SimLink& theLink,
           const SimChaos& theChaos, const FlowLimits& theLimits)
        : clock(theClock), random(seed), link(theLink), chaos(theChaos), limits(theLimits) {}

    const Clock& clock;
    std::mt19937_64 random;
    const SimLink link;
    const SimChaos chaos;
    const FlowLimits limits;
    std::set<ProcessId> alive;
    std::map<std::pair<ProcessId, ProcessId>, std::unique_ptr<SimPipe>> pipes;

    SimPipe& pipe(const ProcessId& from, const ProcessId& to) {
        auto& entry = pipes[{from, to}];
        if (!entry) entry = std::make_unique<SimPipe>(clock, random, link, chaos);
        return *entry;
    }
};

namespace {

/// How long a process that is not there yet is waited for.
constexpr Time kConnectLimit = std::chrono::seconds(1);
constexpr Time kConnectPause = std::chrono::milliseconds(1);

class SimEnd final : public Carrier {
public:
    SimEnd(SimHub& hub, const ProcessId& self, const ProcessId& peer, TransportListener& listener)
        : hub_(hub),
          peer_(peer),
          out_(hub.pipe(self, peer)),
          in_(hub.pipe(peer, self)),
          endpoint_(peer, *this, listener, hub.limits) {}

    std::string_view transportName() const override { return "sim"; }
    std::string describe() const override {
        char text[64];
        std::snprintf(text, sizeof(text), "sim process %llx.%llx",
                      static_cast<unsigned long long>(peer_.high),
                      static_cast<unsigned long long>(peer_.low));
        return text;
    }
    void connect() override {
        connectEnd_ = hub_.clock.now() + kConnectLimit;
        openAt_ = hub_.clock.now() + out_.link().latency + in_.link().latency;
    }
    Endpoint::MappedArena mapped() const override { return {}; }
    void ringDoorbell() override {}

    FrameEndpoint& endpoint() { return endpoint_; }
    SimPipe& out() { return out_; }

    int progress() {
        std::size_t moved = 0;
        if (!endpoint_.isGone()) {
            tryToOpen();
            moved = write();
            moved += read();
            moved += write();
            if (in_.hasEnded()) {
                endpoint_.fail(Status::peerLost(describe() + " vanished without a goodbye"));
            }
        }
        const int count = endpoint_.hasNews() ? endpoint_.complete() : 0;
        return count + (moved > 0 ? 1 : 0);
    }

    Time nextEvent() const {
        if (endpoint_.hasNews()) return hub_.clock.now();
        if (endpoint_.isGone()) return Time::max();
        const Time opening =
            endpoint_.state() == Endpoint::State::kConnecting ? openAt_ : Time::max();
        return std::min(in_.nextArrival(), opening);
    }
    bool hasWork() const {
        return nextEvent() <= hub_.clock.now() ||
               (isOpen() && endpoint_.hasOutput() && out_.hasRoom());
    }
    void flush() { write(); }

private:
    bool isOpen() const { return endpoint_.state() == Endpoint::State::kOpen; }
    void tryToOpen() {
        const Time now = hub_.clock.now();
        if (endpoint_.state() != Endpoint::State::kConnecting || now < openAt_) return;
        if (hub_.alive.contains(peer_)) return endpoint_.opened();
        openAt_ = now + kConnectPause;
        if (now >= connectEnd_) {
            endpoint_.fail(Status::peerLost(describe() + ": nobody answers"));
        }
    }
    std::size_t write() {
        std::size_t total = 0;
        while (isOpen() && endpoint_.hasOutput()) {
            const std::size_t moved = endpoint_.write(out_).bytes;
            total += moved;
            if (moved == 0) break;
        }
        return total;
    }
    std::size_t read() {
        if (endpoint_.isGone() || !in_.hasBytes()) return 0;
        const Moved moved = endpoint_.read(in_);
        if (!moved.failure.ok()) {
            endpoint_.fail(Status::peerLost(describe() + ": " + moved.failure.what()));
        }
        return moved.bytes;
    }

    SimHub& hub_;
    const ProcessId peer_;
    SimPipe& out_;
    SimPipe& in_;
    FrameEndpoint endpoint_;
    Time openAt_{0};
    Time connectEnd_{0};
};

class SimTransport final : public Transport {
public:
    SimTransport(std::shared_ptr<SimHub> hub, const ProcessId& self, TransportListener& listener)
        : hub_(std::move(hub)), self_(self), listener_(listener) {
        hub_->alive.insert(self_);
    }
    ~SimTransport() override { vanish(); }

    std::string_view name() const override { return "sim"; }
    Bytes address() const override { return {}; }

    Result<Endpoint*> endpoint(const ProcessId& peer, const Bytes&) override {
        auto& end = ends_[peer];
        if (!end) end = std::make_unique<SimEnd>(*hub_, self_, peer, listener_);
        return static_cast<Endpoint*>(&end->endpoint());
    }

    int progress(Time) override {
        int count = 0;
        for (const auto& [peer, end] : ends_) count += end->progress();
        return count;
    }
    bool prepareSleep() override {
        return std::none_of(ends_.begin(), ends_.end(),
                            [](const auto& each) { return each.second->hasWork(); });
    }
    void wakeUp() override {}
    std::vector<CardCounters> cards() const override { return {}; }

    Time nextEvent() const override {
        Time next = Time::max();
        for (const auto& [peer, end] : ends_) next = std::min(next, end->nextEvent());
        return next;
    }

    void close(Time) override {
        for (const auto& [peer, end] : ends_) {
            end->out().allowLastWords();  // virtual time cannot pass here
            end->flush();
            if (end->endpoint().state() == Endpoint::State::kOpen) end->endpoint().sayGoodbye();
            end->flush();
        }
        vanish();
        for (const auto& [peer, end] : ends_) {
            end->endpoint().shut(Status::aborted("transport sim was closed"));
            end->endpoint().complete();
        }
    }

private:
    void vanish() {
        hub_->alive.erase(self_);
        for (const auto& [between, pipe] : hub_->pipes) {
            if (between.first == self_) pipe->end();
        }
    }

    const std::shared_ptr<SimHub> hub_;
    const ProcessId self_;
    TransportListener& listener_;
    std::map<ProcessId, std::unique_ptr<SimEnd>> ends_;
};

}  // namespace

SimFabric::SimFabric(const Clock& clock, std::uint64_t seed, const SimLink& link,
                     const SimChaos& chaos, const FlowLimits& limits)
    : hub_(std::make_shared<SimHub>(clock, seed, link, chaos, limits)) {}

SimFabric::~SimFabric() = default;

std::unique_ptr<Transport> SimFabric::makeTransport(const ProcessId& self,
                                                    TransportListener& listener) {
    return std::make_unique<SimTransport>(hub_, self, listener);
}

void SimFabric::setLink(const ProcessId& from, const ProcessId& to, const SimLink& link) {
    hub_->pipe(from, to).setLink(link);
}

void SimFabric::cut(const ProcessId& from, const ProcessId& to) {
    hub_->pipe(from, to).cut();
}

}  // namespace isthmus
