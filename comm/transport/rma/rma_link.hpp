#pragma once

#include "comm/base/unique_fd.hpp"
#include "comm/transport/frame_endpoint.hpp"
#include "comm/transport/rma/rma_mover.hpp"
#include "comm/transport/rma/rma_streams.hpp"
#include "comm/transport/rma/rma_transport.hpp"
#include "comm/transport/tcp/tcp_door.hpp"

namespace isthmus {

class RmaLink;

/// What all links of one transport share.
struct RmaShared {
    RmaDevice& device;
    const RmaOptions& options;
    TransportListener& listener;
    SleepSet& sleepSet;
    int epoll = -1;  ///< level-triggered; data.ptr is RmaSocket
    TcpDoor* door = nullptr;
    RmaPuts puts;
};

/// One of the two connections that a pair of processes proves the key on.
struct RmaSocket {
    RmaLink* link = nullptr;
    UniqueFd fd;
};

struct RmaPlace {
    TcpAddress door;
    Bytes device;
    std::uint32_t pid = 0;
};

/// One peer. Each side connects for what it sends; the other answers with the route that its
/// messages shall name, and later with one byte when it leaves. Nothing else travels there.
class RmaLink final : public Carrier {
public:
    RmaLink(RmaShared& shared, const ProcessId& peer, RmaPlace place, std::uint64_t incomingRoute);
    ~RmaLink() override;

    std::string_view transportName() const override { return shared_.device.name(); }
    std::string describe() const override { return name_; }
    void connect() override;
    Endpoint::MappedArena mapped() const override { return {}; }
    void ringDoorbell() override {}

    FrameEndpoint& endpoint() { return endpoint_; }
    std::uint64_t incomingRoute() const { return incomingRoute_; }
    RmaPeer devicePeer() const { return devicePeer_; }
    /// False: there is one already.
    bool takeIncoming(UniqueFd fd);
    void happened(const RmaSocket& socket);
    void arrived(std::uint64_t sequence, std::span<const std::byte> payload);
    void putEnded(const RmaPut& put, const Status& outcome);
    void broke(const Status& why);
    void refill();
    /// Hands the device what is ready. Returns how many things happened.
    int write();
    int progress(Time now);

    bool hasWork() const;
    bool isConnecting() const { return endpoint_.state() == Endpoint::State::kConnecting; }
    /// The end of something is waited for, which may not announce itself.
    bool isWaiting() const;
    bool hasDevice() const { return devicePeer_ != RmaPeer{}; }

    /// For the end of the transport. False when there is nothing left to push out, or no way to.
    bool flush();
    void endDevice(RmaDevice::Ending ending);
    bool hasDeviceEnded() const { return !hasDevice() || hasDeviceEnded_; }
    void deviceEnded() { hasDeviceEnded_ = true; }
    /// Says goodbye on both connections and closes them; completes everything with `why`.
    void leave(const Status& why);

private:
    void opened(Result<UniqueFd> socket);
    void readRoute();
    void openDevice();
    bool mustWatch() const;
    void watchEnd();
    void watch(RmaSocket& socket, UniqueFd fd);
    void unwatch(RmaSocket& socket);
    bool isOpen() const { return endpoint_.state() == Endpoint::State::kOpen; }

    RmaShared& shared_;
    const ProcessId peer_;
    const RmaPlace place_;
    const std::uint64_t incomingRoute_;
    const std::string name_;
    RmaOut out_;
    RmaIn in_;
    RmaMover mover_;
    FrameEndpoint endpoint_;
    RmaSocket outgoing_;
    RmaSocket incoming_;
    bool hadIncoming_ = false;
    std::array<std::byte, sizeof(std::uint64_t)> route_{};
    std::size_t routeBytes_ = 0;
    RmaPeer devicePeer_{};
    bool isDeviceEnding_ = false;
    bool hasDeviceEnded_ = false;
    bool isReleased_ = false;
    bool saidBye_ = false;
    Time lastNow_{1};
    bool isBroken_ = false;  // one of the connections ended
    Time brokenSince_{0};    // zero: not looked at yet
    Status brokenWhy_;
    Time holdingSince_{0};
};

}  // namespace isthmus
