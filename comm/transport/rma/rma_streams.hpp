#pragma once

#include <map>
#include <vector>

#include "comm/transport/byte_stream.hpp"
#include "comm/transport/rma/rma_device.hpp"

namespace isthmus {

/// What starts every message: whom it is for, and which of its messages it is. The receiver chose
/// the route and told it to one peer that had proved the job key.
struct RmaMessageHeader {
    std::uint64_t route = 0;
    std::uint64_t sequence = 0;
};

/// A stream of bytes to one peer, as messages.
class RmaOut final : public OutStream {
public:
    explicit RmaOut(RmaDevice& device) : device_(device) {}

    void open(RmaPeer peer, std::uint64_t route) {
        peer_ = peer;
        header_.route = route;
    }
    Moved writeSome(std::span<const iovec> pieces) override;

    /// After the device has moved: there may be room again.
    void refill() { isFull_ = false; }
    bool isFull() const { return isFull_; }

private:
    RmaDevice& device_;
    RmaPeer peer_{};
    RmaMessageHeader header_;
    bool isFull_ = false;
    std::vector<iovec> message_;
};

/// The messages of one peer in the order in which they were sent.
class RmaIn {
public:
    /// Gives the payload to `take` (a function from bytes to a Status) when it is its turn, and
    /// after it what waited for it; what `take` says against one is final. kMismatch: a message
    /// that was here, or so many before their turn that one must be lost.
    template <typename Take>
    Status arrived(std::uint64_t sequence, std::span<const std::byte> payload, const Take& take) {
        if (sequence != next_) return keep(sequence, payload);
        ++next_;
        ISTHMUS_TRY(take(payload));
        while (!early_.empty() && early_.begin()->first == next_) {
            ISTHMUS_TRY(take(takeEarly()));
        }
        return {};
    }

private:
    Status keep(std::uint64_t sequence, std::span<const std::byte> payload);
    Bytes takeEarly();

    std::uint64_t next_ = 0;
    std::map<std::uint64_t, Bytes> early_;
    std::size_t earlyBytes_ = 0;
};

}  // namespace isthmus
