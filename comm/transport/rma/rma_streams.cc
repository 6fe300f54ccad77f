#include "comm/transport/rma/rma_streams.hpp"

#include <algorithm>
#include <utility>

namespace isthmus {

namespace {

constexpr std::size_t kMostPieces = 16;
/// Messages that overtook one another. A device has fewer bytes under way to one peer.
constexpr std::size_t kMostEarlyBytes = std::size_t{64} << 20;

/// The next bytes of a list of pieces, in portions.
class PieceCursor {
public:
    explicit PieceCursor(std::span<const iovec> pieces) : pieces_(pieces) { skipEmpty(); }

    bool atEnd() const { return pieces_.empty(); }
    /// Appends at most `bytes` in at most `most` pieces to `to`. Returns how many bytes.
    std::size_t take(std::size_t bytes, std::size_t most, std::vector<iovec>& to) {
        std::size_t taken = 0;
        for (std::size_t count = 0; !atEnd() && taken < bytes && count < most; ++count) {
            const iovec& piece = pieces_.front();
            const std::size_t step = std::min(bytes - taken, piece.iov_len - offset_);
            to.push_back({static_cast<std::byte*>(piece.iov_base) + offset_, step});
            taken += step;
            offset_ += step;
            skipEmpty();
        }
        return taken;
    }

private:
    void skipEmpty() {
        while (!pieces_.empty() && offset_ == pieces_.front().iov_len) {
            pieces_ = pieces_.subspan(1);
            offset_ = 0;
        }
    }

    std::span<const iovec> pieces_;
    std::size_t offset_ = 0;
};

}  // namespace

Moved RmaOut::writeSome(std::span<const iovec> pieces) {
    Moved moved;
    if (isFull_) return moved;
    const std::size_t room = device_.limits().messageBytes - sizeof(RmaMessageHeader);
    PieceCursor cursor(pieces);
    while (!cursor.atEnd()) {
        message_.assign(1, {&header_, sizeof(header_)});
        const std::size_t bytes = cursor.take(room, kMostPieces, message_);
        const RmaPost outcome = device_.post(peer_, message_);
        if (outcome != RmaPost::kTaken) {
            isFull_ = true;  // a peer that is gone is told by the device
            break;
        }
        ++header_.sequence;
        moved.bytes += bytes;
    }
    return moved;
}

Status RmaIn::keep(std::uint64_t sequence, std::span<const std::byte> payload) {
    if (sequence < next_ || !early_.try_emplace(sequence, payload.begin(), payload.end()).second) {
        return Status::mismatch("the same message twice");
    }
    earlyBytes_ += payload.size();
    if (earlyBytes_ <= kMostEarlyBytes) return {};
    return Status::mismatch("a message that did not come");
}

Bytes RmaIn::takeEarly() {
    Bytes payload = std::move(early_.extract(early_.begin()).mapped());
    earlyBytes_ -= payload.size();
    ++next_;
    return payload;
}

}  // namespace isthmus
