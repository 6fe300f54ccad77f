#pragma once

#include <algorithm>
#include <cstddef>

#include "comm/base/sleep_set.hpp"
#include "comm/base/unique_fd.hpp"
#include "comm/transport/byte_stream.hpp"
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

/// One direction's socket between one pair of cards, and who to tell about it.
struct TcpSocket {
    TcpLink* link = nullptr;
    bool isOut = false;
    std::size_t lane = 0;
    std::size_t card = 0;  ///< of ours
    UniqueFd fd;
    std::uint64_t sent = 0;  ///< bytes, since it was opened
    std::uint64_t received = 0;

    void watch(TcpShared& shared, UniqueFd opened);
    void unwatch(TcpShared& shared);
    /// Adds what it carried to its card's.
    void count(std::vector<CardCounters>& cards) const {
        cards[card].sent += sent;
        cards[card].received += received;
    }
};

/// An outgoing connection. After a short write it waits for room instead of asking again.
class TcpOut final : public OutStream {
public:
    TcpOut(TcpShared& shared, TcpLink& link, std::size_t lane) : shared_(shared) {
        socket.link = &link;
        socket.isOut = true;
        socket.lane = socket.card = lane;
    }
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

    /// What the peer's system has not acknowledged; and all that it ever has.
    struct Progress {
        std::uint32_t unacknowledged = 0;  ///< segments
        std::uint64_t acknowledged = 0;    ///< bytes
    };
    Progress progress() const;

    TcpSocket socket;

private:
    void setPatience(bool isPatient);

    TcpShared& shared_;
    bool hasRoom_ = true;
    bool isPatient_ = false;
    Time watchedAt_{0};
};

/// An incoming connection. After a short read it is empty until epoll says otherwise.
class TcpIn final : public InStream {
public:
    TcpIn(TcpLink& link, std::size_t lane) {
        socket.link = &link;
        socket.lane = lane;
    }
    Moved readSome(std::span<const iovec> pieces) override;
    void refill() { isEmpty_ = false; }
    bool isEmpty() const { return isEmpty_; }

    TcpSocket socket;

private:
    bool isEmpty_ = true;
};

}  // namespace isthmus
