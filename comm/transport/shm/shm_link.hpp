#pragma once

#include <atomic>

#include "comm/transport/byte_ring.hpp"
#include "comm/transport/shm/shm_handshake.hpp"
#include "comm/transport/shm/shm_transport.hpp"

namespace isthmus {

/// What a process tells its node peers in its arena.
struct ShmPage {
    alignas(128) std::atomic<std::uint32_t> isAsleep;
};

/// What all links of one transport share.
struct ShmShared {
    const ShmOptions& options;
    const ProcessId self;
    const JobKey key;
    TransportListener& listener;
    SleepSet& sleepSet;
    Arena& arena;
    std::uint64_t pageOffset = 0;
    int epoll = -1;  ///< level-triggered; data.ptr is ShmSocket
    Time now{1};
};

class ShmLink;

struct ShmSocket {
    ShmLink* link = nullptr;  ///< null: the listener or a stranger
    bool hasHappened = false;
    UniqueFd fd;
};

/// One node peer: a ring here that this process writes and the peer reads, one there the other way,
/// and a socket each way for doorbells and to notice the end.
class ShmLink final : public Carrier {
public:
    ShmLink(ShmShared& shared, const ProcessId& peer, std::string socketName, std::uint32_t peerPid,
            const JobKey& peerKey);
    ~ShmLink() override;

    std::string_view transportName() const override { return "shm"; }
    std::string describe() const override { return name_; }
    void connect() override;
    Endpoint::MappedArena mapped() const override;
    void ringDoorbell() override;

    FrameEndpoint& endpoint() { return endpoint_; }
    void takeIncoming(ShmAccept::Guest guest);
    int progress();
    /// Reads what sockets say. Rare: bytes do not come this way.
    int lookAtSockets();
    bool hasWork() const;
    bool isConnecting() const { return connecting_ != nullptr || brokenSince_ != Time::zero(); }
    /// False when there is nothing left to push out, or no way to.
    bool flush();
    void leave();

private:
    void openIfReady();
    bool pollConnecting();
    void connected(Result<UniqueFd> socket);
    void socketEnded(ShmSocket& socket);
    bool isQuiet() const;
    std::size_t write();
    std::size_t read();
    void watch(ShmSocket& socket, UniqueFd fd);
    void unwatch(ShmSocket& socket);
    void failed(const Status& why);
    bool isOpen() const { return endpoint_.state() == Endpoint::State::kOpen; }

    ShmShared& shared_;
    const ProcessId peer_;
    const JobKey peerKey_;
    const std::string socketName_;
    const std::string name_;

    std::unique_ptr<ShmConnect> connecting_;
    std::byte* ring_ = nullptr;  // in our arena
    ShmSocket out_;
    ShmSocket in_;
    std::unique_ptr<PeerArena> peerArena_;
    ShmPage* peerPage_ = nullptr;
    std::unique_ptr<RingWriter> writer_;
    std::unique_ptr<RingReader> reader_;
    bool hasInEnded_ = false;
    Time brokenSince_{0};  // the outgoing socket ended before the peer came; zero: it did not
    FrameEndpoint endpoint_;
};

}  // namespace isthmus
