#pragma once

#include <deque>
#include <random>
#include <vector>

#include "comm/base/clock.hpp"
#include "comm/transport/byte_stream.hpp"
#include "comm/transport/sim/sim_transport.hpp"

namespace isthmus {

/// One direction between two processes of a simulation: a queue of packets with their times of
/// arrival. Order is kept, as on a TCP connection.
class SimPipe final : public OutStream, public InStream {
public:
    SimPipe(const Clock& clock, std::mt19937_64& random, const SimLink& link, const SimChaos& chaos)
        : clock_(clock), random_(random), chaos_(chaos), link_(link) {}

    Moved writeSome(std::span<const iovec> pieces) override;
    Moved readSome(std::span<const iovec> pieces) override;

    const SimLink& link() const { return link_; }
    void setLink(const SimLink& link) { link_ = link; }

    bool hasRoom() const { return link_.roomBytes > held_ || isLastWords_; }
    bool hasBytes() const { return !packets_.empty() && packets_.front().arrival <= clock_.now(); }
    /// The writer's end and everything before it has arrived.
    bool hasEnded() const { return packets_.empty() && end_ <= clock_.now(); }
    /// When something arrives next; max: nothing is on its way.
    Time nextArrival() const { return packets_.empty() ? end_ : packets_.front().arrival; }

    /// Room does not matter any more: the writer is about to leave.
    void allowLastWords() { isLastWords_ = true; }
    /// The writer's end, seen at the other side when it arrives there.
    void end();
    /// From now on nothing arrives, not even the end.
    void cut();

private:
    struct Packet {
        Time arrival;
        std::vector<std::byte> bytes;
        std::size_t read = 0;
    };
    std::size_t shortened(std::size_t bytes);
    void send(const std::byte* from, std::size_t bytes);

    const Clock& clock_;
    std::mt19937_64& random_;
    const SimChaos chaos_;
    std::deque<Packet> packets_;
    std::size_t held_ = 0;
    Time busyUntil_{0};
    Time lastArrival_{0};
    Time end_ = Time::max();
    bool isLastWords_ = false;
    bool isCut_ = false;
    SimLink link_;
};

}  // namespace isthmus
