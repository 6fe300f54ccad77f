#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "comm/transport/tcp/tcp_bundle.hpp"

namespace isthmus {

TcpBundleIn::TcpBundleIn(TcpShared& shared, TcpLink& link, std::size_t lanes) : shared_(shared) {
    for (std::size_t at = 0; at < lanes; ++at)
        lanes_.push_back(std::make_unique<Lane>(shared, link, at));
}

bool TcpBundleIn::take(UniqueFd socket) {
    if (taken_ == lanes_.size()) return false;
    Lane& lane = *lanes_[taken_++];
    lane.in.socket.watch(shared_, std::move(socket));
    lane.in.refill();
    return true;
}

bool TcpBundleIn::isOpen() const {
    return std::any_of(lanes_.begin(), lanes_.end(),
                       [](const auto& lane) { return lane->in.socket.fd.isOpen(); });
}

/// Something would happen: a later chunk waits for those before it.
bool TcpBundleIn::canRead(const Lane& lane) const {
    if (!lane.in.socket.fd.isOpen() || lane.hasEnded || lane.in.isEmpty()) return false;
    return !lane.hasChunk() || lane.chunk.sequence <= next_;
}

bool TcpBundleIn::isEmpty() const {
    return std::none_of(lanes_.begin(), lanes_.end(),
                        [this](const auto& lane) { return canRead(*lane); });
}

Moved TcpBundleIn::readSome(std::span<const iovec> pieces) {
    if (!isBundle()) return lanes_[0]->in.readSome(pieces);
    for (const auto& lane : lanes_) {
        while (canRead(*lane)) {
            if (!lane->hasChunk()) {
                readHeader(*lane);
            } else if (isOld(*lane)) {
                discard(*lane);
            } else {
                Moved moved = hand(*lane, pieces);
                if (moved.bytes > 0) return moved;
            }
        }
        if (!lane->hasEnded && lane->hasChunk() && lane->chunk.sequence > next_)
            lane->in.pause(!lane->in.isEmpty());
    }
    Moved ending;
    for (const auto& lane : lanes_) {
        if (lane->in.socket.fd.isOpen() && !lane->hasEnded) return ending;
    }
    for (const auto& lane : lanes_) {
        if (ending.failure.ok()) ending.failure = lane->failure;
    }
    ending.isEnd = ending.failure.ok();
    return ending;
}

/// What a read did beside the bytes.
std::size_t TcpBundleIn::note(Lane& lane, const Moved& moved) {
    if (moved.isEnd || !moved.failure.ok()) {
        lane.hasEnded = true;
        lane.failure = moved.failure;
        lane.in.pause(true);  // an end stays readable for ever
    }
    return moved.bytes;
}

void TcpBundleIn::readHeader(Lane& lane) {
    auto* const to = reinterpret_cast<std::byte*>(&lane.chunk) + lane.headerBytes;
    const iovec rest{to, kTcpChunkHeaderBytes - lane.headerBytes};
    lane.headerBytes += note(lane, lane.in.readSome({&rest, 1}));
    if (lane.hasChunk()) begin(lane);
}

void TcpBundleIn::begin(Lane& lane) {
    lane.left = lane.chunk.bytes;
    const bool isGood = lane.chunk.magic == TcpChunkHeader::kMagic && lane.left > 0 &&
                        lane.left <= kTcpChunkBytes && lane.chunk.sequence < next_ + kMostTcpChunks;
    if (isGood) return;
    lane.headerBytes = 0;
    note(lane, {0, false, Status::mismatch("a chunk that is none")});
}

/// It, or as much of it as was read up to here, came over a connection that was lost.
bool TcpBundleIn::isOld(const Lane& lane) const {
    return lane.chunk.sequence < next_ || lane.chunk.bytes - lane.left < done_;
}

void TcpBundleIn::discard(Lane& lane) {
    const std::size_t at = lane.chunk.bytes - lane.left;
    const std::size_t bytes = lane.chunk.sequence < next_ ? lane.left : done_ - at;
    waste_.resize(bytes);
    const iovec place{waste_.data(), bytes};
    lane.left -= note(lane, lane.in.readSome({&place, 1}));
    if (lane.left == 0) lane.headerBytes = 0;
}

Moved TcpBundleIn::hand(Lane& lane, std::span<const iovec> pieces) {
    pieces_.clear();
    std::size_t room = lane.left;
    for (const iovec& piece : pieces) {
        if (room == 0) break;
        pieces_.push_back({piece.iov_base, std::min(piece.iov_len, room)});
        room -= pieces_.back().iov_len;
    }
    // With its end comes the next header, if it is there: one system call less.
    TcpChunkHeader following;
    const bool mayFollow = room == 0;
    if (mayFollow) pieces_.push_back({&following, kTcpChunkHeaderBytes});
    const std::size_t got = note(lane, lane.in.readSome(pieces_));
    const std::size_t bytes = std::min(got, lane.left);
    lane.left -= bytes;
    done_ += bytes;
    if (lane.left == 0) {
        finish(lane);
        lane.chunk = following;
        lane.headerBytes = got - bytes;
        if (lane.hasChunk()) begin(lane);
    }
    return {bytes, false, {}};
}

void TcpBundleIn::finish(Lane& lane) {
    ++next_;
    done_ = 0;
    for (const auto& each : lanes_) {
        if (!each->hasEnded) each->in.pause(false);
    }
    if (++unsaid_ >= kTcpChunksPerWord) sayHave(lane);
}

void TcpBundleIn::sayHave(Lane& lane) {
    std::array<std::byte, TcpWord::kHaveBytes> word{};
    word[0] = std::byte{static_cast<unsigned char>(TcpWord::Kind::kHave)};
    std::memcpy(word.data() + 1, &next_, sizeof(next_));
    const ssize_t sent = ::send(lane.in.socket.fd.get(), word.data(), word.size(),
                                MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent == static_cast<ssize_t>(word.size())) unsaid_ = 0;
}

void TcpBundleIn::sayBye() {
    const auto bye = static_cast<char>(TcpWord::Kind::kBye);
    for (const auto& lane : lanes_) {
        if (lane->in.socket.fd.isOpen())
            ::send(lane->in.socket.fd.get(), &bye, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
}

void TcpBundleIn::close() {
    for (const auto& lane : lanes_) lane->in.socket.unwatch(shared_);
}

}  // namespace isthmus
