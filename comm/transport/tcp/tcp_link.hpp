#pragma once

#include <algorithm>

#include "comm/base/unique_fd.hpp"
#include "comm/transport/tcp/tcp_door.hpp"

namespace isthmus {

/// What all links of one transport share.
struct TcpShared {
    const TcpOptions& options;
    TransportListener& listener;
    SleepSet& sleepSet;
    int epoll = -1;  ///< level-triggered; data.ptr is TcpSocket
    TcpDoor* door = nullptr;
};

class TcpLink;

/// One direction's socket, and who to tell about it.
struct TcpSocket {
    TcpLink* link = nullptr;
    bool isOut = false;
    UniqueFd fd;
};

/// The outgoing connection. After a short write it waits for room instead of asking again.
class TcpOut final : public OutStream {
public:
    explicit TcpOut(TcpShared& shared) : shared_(shared) {}
    Moved writeSome(std::span<const iovec> pieces) override;
    void setRoom(bool hasRoom);
    bool hasRoom() const { return hasRoom_; }

    /// How often watchWindow() wants to be called while there is no room.
    static Time windowLook(const TcpOptions& options) {
        return std::min<Time>(std::chrono::seconds(1), options.userTimeout / 4);
    }
    /// A peer whose system acknowledges all that it takes, and takes no more, is stopped or late,
    /// not gone: how long that may last is up to the calls, not to the connection.
    void watchWindow(Time now);

    TcpSocket socket;

private:
    void setPatience(bool isPatient);

    TcpShared& shared_;
    bool hasRoom_ = true;
    bool isPatient_ = false;
    Time watchedAt_{0};
};

/// The incoming connection. After a short read it is empty until epoll says otherwise.
class TcpIn final : public InStream {
public:
    Moved readSome(std::span<const iovec> pieces) override;
    void refill() { isEmpty_ = false; }
    bool isEmpty() const { return isEmpty_; }

    TcpSocket socket;

private:
    bool isEmpty_ = true;
};

/// One peer over TCP: a connection made here for what goes out, one made there for what comes in.
class TcpLink final : public Carrier {
public:
    TcpLink(TcpShared& shared, const ProcessId& peer, const TcpAddress& address,
            std::uint32_t peerPid);
    ~TcpLink() override;

    std::string_view transportName() const override { return "tcp"; }
    std::string describe() const override { return name_; }
    void connect() override;
    Endpoint::MappedArena mapped() const override { return {}; }
    void ringDoorbell() override {}

    FrameEndpoint& endpoint() { return endpoint_; }
    /// False: there is one already.
    bool takeIncoming(UniqueFd fd);
    void happened(const TcpSocket& socket, std::uint32_t events);
    int progress(Time now);
    bool hasWork() const;
    bool isExpecting() const { return !endpoint_.isGone() && endpoint_.isExpecting(); }
    bool isStuck() const { return out_.socket.fd.isOpen() && !out_.hasRoom(); }
    bool isHolding() const { return isBroken_; }

    /// False when there is nothing left to push out, or no way to.
    bool flush();
    /// Says goodbye on both connections and closes them.
    void leave();

private:
    void opened(Result<UniqueFd> socket);
    void outgoingHappened(std::uint32_t events);
    void broke(const Status& why);
    std::size_t write();
    std::size_t read();
    void watch(TcpSocket& socket, UniqueFd fd);
    void unwatch(TcpSocket& socket);
    bool isOpen() const { return endpoint_.state() == Endpoint::State::kOpen; }

    TcpShared& shared_;
    const ProcessId peer_;
    const TcpAddress address_;
    const std::string name_;
    TcpOut out_;
    TcpIn in_;
    FrameEndpoint endpoint_;
    bool isBroken_ = false;  // the outgoing connection ended
    Time brokenSince_{0};    // zero: not looked at yet
    Status brokenWhy_;
    bool saidBye_ = false;  // the peer did, on our outgoing connection
    bool hadIncoming_ = false;
};

}  // namespace isthmus
