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

/// The bytes of a peer's messages, in the order in which they were sent.
class RmaIn final : public InStream {
public:
    /// One message, header and all. The payload is read from where it is until keep(). kMismatch:
    /// one that was here, or so many before their turn that one must be lost.
    Status lend(std::uint64_t sequence, std::span<const std::byte> payload);
    /// Copies what was not read of the lent payload.
    void keep();

    Moved readSome(std::span<const iovec> pieces) override;
    bool hasBytes() const { return at_ < kept_.size() || !lent_.empty(); }

private:
    void keepInOrder(std::span<const std::byte> payload);

    std::uint64_t next_ = 0;
    std::span<const std::byte> lent_;  // after all that is kept
    std::vector<std::byte> kept_;      // from at_ on
    std::size_t at_ = 0;
    std::map<std::uint64_t, Bytes> early_;
    std::size_t earlyBytes_ = 0;
};

}  // namespace isthmus
