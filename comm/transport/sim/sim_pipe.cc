#include "comm/transport/sim/sim_pipe.hpp"

#include <algorithm>
#include <cstring>

namespace isthmus {

namespace {
/// Bytes that arrive together: what offloading makes of a TCP stream (64 KiB at most).
constexpr std::size_t kPacketBytes = 64 * 1024;
constexpr std::size_t kFewBytes = 100;
}  // namespace

std::size_t SimPipe::shortened(std::size_t bytes) {
    if (chaos_.shortMoves <= 0 || bytes == 0) return bytes;
    if (std::uniform_real_distribution<>(0, 1)(random_) >= chaos_.shortMoves) return bytes;
    return std::uniform_int_distribution<std::size_t>(1, std::min(bytes, kFewBytes))(random_);
}

Moved SimPipe::writeSome(std::span<const iovec> pieces) {
    Moved moved;
    std::size_t wanted = 0;
    for (const iovec& piece : pieces) wanted += piece.iov_len;
    if (!isLastWords_) {
        wanted = shortened(std::min(wanted, link_.roomBytes - std::min(link_.roomBytes, held_)));
    }
    for (const iovec& piece : pieces) {
        std::size_t done = 0;
        while (done < piece.iov_len && moved.bytes < wanted) {
            const std::size_t step =
                std::min({piece.iov_len - done, wanted - moved.bytes, kPacketBytes});
            send(static_cast<const std::byte*>(piece.iov_base) + done, step);
            done += step;
            moved.bytes += step;
        }
    }
    return moved;
}

void SimPipe::send(const std::byte* from, std::size_t bytes) {
    const auto onTheWire =
        Time(static_cast<std::int64_t>(1e9 * static_cast<double>(bytes) / link_.bytesPerSecond));
    busyUntil_ = std::max(busyUntil_, clock_.now()) + onTheWire;
    Time arrival = busyUntil_ + link_.latency;
    if (chaos_.longestDelay > Time::zero()) {
        arrival += Time(
            std::uniform_int_distribution<std::int64_t>(0, chaos_.longestDelay.count())(random_));
    }
    lastArrival_ = std::max(lastArrival_, arrival);
    if (isCut_) return;
    packets_.push_back({lastArrival_, {from, from + bytes}, 0});
    held_ += bytes;
}

Moved SimPipe::readSome(std::span<const iovec> pieces) {
    Moved moved;
    std::size_t wanted = 0;
    for (const iovec& piece : pieces) wanted += piece.iov_len;
    wanted = shortened(wanted);
    for (const iovec& piece : pieces) {
        std::size_t done = 0;
        while (done < piece.iov_len && moved.bytes < wanted && hasBytes()) {
            Packet& packet = packets_.front();
            const std::size_t step = std::min(
                {piece.iov_len - done, wanted - moved.bytes, packet.bytes.size() - packet.read});
            std::memcpy(static_cast<std::byte*>(piece.iov_base) + done,
                        packet.bytes.data() + packet.read, step);
            packet.read += step;
            done += step;
            moved.bytes += step;
            if (packet.read == packet.bytes.size()) packets_.pop_front();
        }
    }
    held_ -= moved.bytes;
    return moved;
}

void SimPipe::end() {
    if (isCut_ || end_ != Time::max()) return;
    end_ = std::max(lastArrival_, clock_.now() + link_.latency);
}

void SimPipe::cut() {
    isCut_ = true;
    packets_.clear();
    held_ = 0;
    end_ = Time::max();
}

}  // namespace isthmus
