#include "comm/transport/inproc/inproc_transport.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "comm/base/assert.hpp"
#include "comm/transport/byte_ring.hpp"
#include "comm/transport/link_table.hpp"

namespace isthmus {

/// One direction between two processes-in-spirit. Its pages come when bytes do: a thousand ranks
/// that hardly talk need hardly any memory.
struct InprocPipe {
    InprocPipe()
        : memory(
              static_cast<std::byte*>(::mmap(nullptr, kRingMemoryBytes, PROT_READ | PROT_WRITE,
                                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {
        ISTHMUS_ASSERT(memory != MAP_FAILED);
    }
    ~InprocPipe() { ::munmap(memory, kRingMemoryBytes); }
    InprocPipe(const InprocPipe&) = delete;
    InprocPipe& operator=(const InprocPipe&) = delete;

    std::byte* const memory;
    std::atomic<bool> isWriterGone{false};
    /// The reader was told of news here, or of room in the other direction, and has not looked yet.
    std::atomic<bool> isAnnounced{false};
};

/// What others need of one transport to wake it.
struct InprocPort {
    std::atomic<bool> isAsleep{false};
    std::atomic<bool> isOpen{true};
    Endpoint::MappedArena arena;

    std::mutex mutex;              // guards the two below
    SleepSet* sleepSet = nullptr;  // null once the transport is gone
    std::vector<ProcessId> callers;
    std::atomic<bool> hasCallers{false};

    /// `caller` wrote to, or read from, the transport's end of `pipe`, which leads here.
    void call(const ProcessId& caller, InprocPipe& pipe) {
        if (!pipe.isAnnounced.exchange(true, std::memory_order_acq_rel)) {
            const std::lock_guard lock(mutex);
            callers.push_back(caller);
            hasCallers.store(true, std::memory_order_release);
        }
        wake();
    }

    /// Who called since the last time.
    std::vector<ProcessId> takeCallers() {
        if (!hasCallers.load(std::memory_order_acquire)) return {};
        const std::lock_guard lock(mutex);
        hasCallers.store(false, std::memory_order_relaxed);
        return std::exchange(callers, {});
    }

    /// Memory that both map has news.
    void wake() {
        std::atomic_thread_fence(std::memory_order_seq_cst);  // with the one in prepareSleep
        if (!isAsleep.load(std::memory_order_relaxed)) return;
        const std::lock_guard lock(mutex);
        if (sleepSet != nullptr) sleepSet->wake();
    }
};

struct InprocHub {
    std::mutex mutex;
    std::map<ProcessId, std::shared_ptr<InprocPort>> ports;
    std::map<std::pair<ProcessId, ProcessId>, std::shared_ptr<InprocPipe>> pipes;

    std::shared_ptr<InprocPort> port(const ProcessId& of) {
        const std::lock_guard lock(mutex);
        const auto found = ports.find(of);
        return found == ports.end() ? nullptr : found->second;
    }
    std::shared_ptr<InprocPipe> pipe(const ProcessId& from, const ProcessId& to) {
        const std::lock_guard lock(mutex);
        auto& entry = pipes[{from, to}];
        if (!entry) entry = std::make_shared<InprocPipe>();
        return entry;
    }
};

namespace {

class InprocLink;

/// The links of one transport that are to be looked at; each once.
class InprocAgenda {
public:
    void add(InprocLink& link);
    std::vector<InprocLink*> takeAll();
    const std::vector<InprocLink*>& links() const { return links_; }

private:
    std::vector<InprocLink*> links_;
};

class InprocLink final : public Carrier {
public:
    InprocLink(InprocHub& hub, InprocAgenda& agenda, const ProcessId& self, const ProcessId& peer,
               TransportListener& listener, const FlowLimits& limits)
        : hub_(hub),
          agenda_(agenda),
          self_(self),
          peer_(peer),
          out_(hub.pipe(self, peer)),
          in_(hub.pipe(peer, self)),
          writer_(out_->memory),
          reader_(in_->memory),
          endpoint_(peer, *this, listener, limits) {}

    ~InprocLink() override { leave(); }

    std::string_view transportName() const override { return "inproc"; }
    std::string describe() const override {
        char text[64];
        std::snprintf(text, sizeof(text), "inproc process %016llx%016llx",
                      static_cast<unsigned long long>(peer_.high),
                      static_cast<unsigned long long>(peer_.low));
        return text;
    }
    void connect() override {
        findPort();
        agenda_.add(*this);
    }
    Endpoint::MappedArena mapped() const override {
        return port_ && endpoint_.state() == Endpoint::State::kOpen ? port_->arena
                                                                    : Endpoint::MappedArena{};
    }
    void ringDoorbell() override {
        if (port_) port_->wake();
    }
    void stirred() override { agenda_.add(*this); }

    FrameEndpoint& endpoint() { return endpoint_; }
    const FrameEndpoint& endpoint() const { return endpoint_; }

    int progress() {
        // The flag before the bytes: what was written before it went up is still read. The
        // announcement before them too: what comes later is announced again. Rings without one are
        // not touched: they need no page then.
        const bool isWriterGone = in_->isWriterGone.load(std::memory_order_acquire);
        hasUnread_ = in_->isAnnounced.exchange(false, std::memory_order_acq_rel) || hasUnread_;
        if (!port_ && isConnecting()) findPort();
        std::size_t moved = write();
        if (hasBytes() && !endpoint_.isGone()) moved += read();
        moved += write();
        if (moved > 0) tell();
        if (isWriterGone && !hasBytes()) {
            endpoint_.fail(Status::peerLost(describe() + " vanished"));
        }
        hasUnread_ = !endpoint_.isGone() && (hasBytes() || isWriterGone);
        const int count = endpoint_.hasNews() ? endpoint_.complete() : 0;
        return count + (moved > 0 ? 1 : 0);
    }

    /// One look was not enough, or nobody tells when the next may do more.
    bool isToBeSeen() const {
        return hasUnread_ || endpoint_.hasNews() || endpoint_.hasOutput() || isConnecting();
    }

    /// Something can be done now.
    bool hasWork() const {
        return hasUnread_ || in_->isAnnounced.load(std::memory_order_acquire) ||
               endpoint_.hasNews() ||
               (!endpoint_.isGone() && isOpen() && endpoint_.hasOutput() && writer_.hasRoom());
    }

    bool isConnecting() const { return endpoint_.state() == Endpoint::State::kConnecting; }
    bool isOpen() const { return endpoint_.state() == Endpoint::State::kOpen; }
    bool isOnAgenda = false;
    /// False when there is nothing left to push out.
    bool flush() {
        write();
        tell();
        return isOpen() && endpoint_.hasOutput() && port_->isOpen.load(std::memory_order_acquire);
    }
    void leave() {
        out_->isWriterGone.store(true, std::memory_order_release);
        tell();
    }

private:
    void tell() {
        if (port_) port_->call(self_, *out_);
    }
    bool hasBytes() const { return hasUnread_ && reader_.hasBytes(); }
    void findPort() {
        port_ = hub_.port(peer_);
        if (port_) endpoint_.opened();
    }
    std::size_t write() {
        return isOpen() && endpoint_.hasOutput() ? endpoint_.write(writer_).bytes : 0;
    }
    std::size_t read() {
        const Moved moved = endpoint_.read(reader_);
        if (!moved.failure.ok()) {
            endpoint_.fail(Status::peerLost(describe() + ": " + moved.failure.what()));
        }
        return moved.bytes;
    }

    InprocHub& hub_;
    InprocAgenda& agenda_;
    const ProcessId self_;
    const ProcessId peer_;
    const std::shared_ptr<InprocPipe> out_;
    const std::shared_ptr<InprocPipe> in_;
    std::shared_ptr<InprocPort> port_;
    RingWriter writer_;
    RingReader reader_;
    bool hasUnread_ = false;
    FrameEndpoint endpoint_;
};

void InprocAgenda::add(InprocLink& link) {
    if (!std::exchange(link.isOnAgenda, true)) links_.push_back(&link);
}

std::vector<InprocLink*> InprocAgenda::takeAll() {
    for (InprocLink* const link : links_) link->isOnAgenda = false;
    return std::exchange(links_, {});
}

class InprocTransport final : public Transport {
public:
    InprocTransport(std::shared_ptr<InprocHub> hub, const ProcessId& self, Arena* arena,
                    SleepSet& sleepSet, TransportListener& listener, const FlowLimits& limits)
        : hub_(std::move(hub)),
          self_(self),
          listener_(listener),
          limits_(limits),
          port_(std::make_shared<InprocPort>()) {
        port_->sleepSet = &sleepSet;
        if (arena != nullptr) port_->arena = {arena->base(), arena->capacityBytes()};
        const std::lock_guard lock(hub_->mutex);
        hub_->ports[self_] = port_;
    }

    ~InprocTransport() override {
        port_->isOpen.store(false, std::memory_order_release);
        links_.clear();
        {
            const std::lock_guard lock(hub_->mutex);
            // Peers that never talked to us learn it from their end of the pipe.
            for (auto mine = hub_->pipes.lower_bound({self_, ProcessId{}});
                 mine != hub_->pipes.end() && mine->first.first == self_; ++mine) {
                mine->second->isWriterGone.store(true, std::memory_order_release);
                const auto other = hub_->ports.find(mine->first.second);
                if (other != hub_->ports.end()) other->second->call(self_, *mine->second);
            }
        }
        const std::lock_guard lock(port_->mutex);
        port_->sleepSet = nullptr;
    }

    std::string_view name() const override { return "inproc"; }
    /// Which fabric: processes of another one cannot be reached, as if they were on another node.
    Bytes address() const override {
        const InprocHub* const hub = hub_.get();
        const auto raw = std::as_bytes(std::span(&hub, 1));
        return {raw.begin(), raw.end()};
    }

    Result<Endpoint*> endpoint(const ProcessId& peer, const Bytes& address) override {
        if (!address.empty() && address != this->address()) {
            return Status::unsupported("the process belongs to another fabric");
        }
        auto& link = links_[peer];
        if (!link) {
            link = std::make_unique<InprocLink>(*hub_, agenda_, self_, peer, listener_, limits_);
            agenda_.add(*link);  // the peer may have written, or left, before
        }
        return static_cast<Endpoint*>(&link->endpoint());
    }

    int progress(Time now) override {
        lastNow_ = now;
        int count = 0;
        for (const ProcessId& caller : port_->takeCallers()) {
            const auto found = links_.find(caller);
            if (found != links_.end()) agenda_.add(*found->second);
        }
        for (InprocLink* const link : agenda_.takeAll()) {
            count += link->progress();
            if (link->isToBeSeen()) agenda_.add(*link);
        }
        return count;
    }

    bool prepareSleep() override {
        port_->isAsleep.store(true, std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_seq_cst);  // with the one in wake
        const bool hasWork = port_->hasCallers.load(std::memory_order_acquire) ||
                             std::any_of(agenda_.links().begin(), agenda_.links().end(),
                                         [](const InprocLink* link) { return link->hasWork(); });
        if (hasWork) wakeUp();
        return !hasWork;
    }
    void wakeUp() override { port_->isAsleep.store(false, std::memory_order_relaxed); }
    /// Nobody tells when a peer's transport is made.
    std::vector<CardCounters> cards() const override { return {}; }

    Time nextEvent() const override {
        return isWaitingForPort() ? lastNow_ + std::chrono::milliseconds(1) : Time::max();
    }

    void close(Time deadline) override {
        sayGoodbye(links_, deadline, [] { std::this_thread::yield(); });
        port_->isOpen.store(false, std::memory_order_release);
        for (const auto& [peer, link] : links_) {
            link->endpoint().shut(Status::aborted("transport inproc was closed"));
            link->leave();
            link->endpoint().complete();
        }
    }

private:
    bool isWaitingForPort() const {
        return std::any_of(agenda_.links().begin(), agenda_.links().end(),
                           [](const InprocLink* link) { return link->isConnecting(); });
    }

    const std::shared_ptr<InprocHub> hub_;
    const ProcessId self_;
    TransportListener& listener_;
    const FlowLimits limits_;
    const std::shared_ptr<InprocPort> port_;
    InprocAgenda agenda_;
    std::map<ProcessId, std::unique_ptr<InprocLink>> links_;
    Time lastNow_{0};
};

}  // namespace

InprocFabric::InprocFabric(const FlowLimits& limits)
    : limits_(limits), hub_(std::make_shared<InprocHub>()) {}

InprocFabric::~InprocFabric() = default;

std::unique_ptr<Transport> InprocFabric::makeTransport(const ProcessId& self, Arena* arena,
                                                       SleepSet& sleepSet,
                                                       TransportListener& listener) {
    return std::make_unique<InprocTransport>(hub_, self, arena, sleepSet, listener, limits_);
}

}  // namespace isthmus
