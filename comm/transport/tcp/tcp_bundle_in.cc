#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/bootstrap/socket.hpp"
#include "comm/transport/tcp/tcp_bundle.hpp"

namespace isthmus {

namespace {

/// Each card's address is listened on alone, so the connection's own says which it came by.
std::size_t cardOf(const UniqueFd& connection, const TcpOptions& options) {
    const std::string host = localAddressOf(connection);
    for (std::size_t card = 0; card < options.cards.size(); ++card) {
        if (options.cards[card].address == host) return card;
    }
    return 0;
}

}  // namespace

TcpBundleIn::TcpBundleIn(TcpShared& shared, TcpLink& link, std::size_t lanes) : shared_(shared) {
    for (std::size_t at = 0; at < lanes; ++at) lanes_.push_back(std::make_unique<Lane>(link, at));
}

bool TcpBundleIn::take(UniqueFd socket) {
    if (taken_ == lanes_.size()) return false;
    Lane& lane = *lanes_[taken_++];
    lane.in.socket.card = cardOf(socket, shared_.options);
    lane.in.socket.watch(shared_, std::move(socket));
    lane.in.refill();
    return true;
}

void TcpBundleIn::count(std::vector<CardCounters>& cards) const {
    for (const auto& lane : lanes_) lane->in.socket.count(cards);
}

bool TcpBundleIn::canRead(const Lane& lane) {
    return lane.in.socket.fd.isOpen() && !lane.hasEnded && !lane.in.isEmpty();
}

bool TcpBundleIn::isEmpty() const {
    if (early_.contains(next_)) return false;
    return std::none_of(lanes_.begin(), lanes_.end(),
                        [](const auto& lane) { return canRead(*lane); });
}

Moved TcpBundleIn::readSome(std::span<const iovec> pieces) {
    if (!isBundle()) return lanes_[0]->in.readSome(pieces);
    if (early_.contains(next_)) return handEarly(pieces);
    while (Lane* const lane = nextLane()) {
        const Moved moved = work(*lane, pieces);
        if (moved.bytes > 0) return moved;
        if (early_.contains(next_)) return handEarly(pieces);
    }
    return ending();
}

/// That with the chunk that is due, if it is there; else what must be read to find it.
TcpBundleIn::Lane* TcpBundleIn::nextLane() const {
    Lane* first = nullptr;
    for (const auto& lane : lanes_) {
        if (!canRead(*lane)) continue;
        if (!lane->hasChunk()) return lane.get();
        if (first == nullptr || lane->chunk.sequence < first->chunk.sequence) first = lane.get();
    }
    return first;
}

/// Nothing, as long as one connection is left.
Moved TcpBundleIn::ending() const {
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

Moved TcpBundleIn::work(Lane& lane, std::span<const iovec> pieces) {
    const std::uint64_t sequence = lane.chunk.sequence;
    if (!lane.hasChunk()) {
        readHeader(lane);
    } else if (sequence < next_) {  // it came by another way meanwhile
        discard(lane, lane.left);
    } else if (sequence > next_ || lane.early.bytes != nullptr) {
        readEarly(lane);
    } else if (lane.at() < done_) {  // so far it did
        discard(lane, done_ - lane.at());
    } else {
        return hand(lane, pieces);
    }
    return {};
}

/// What a read did beside the bytes.
std::size_t TcpBundleIn::note(Lane& lane, const Moved& moved) {
    if (moved.isEnd || !moved.failure.ok()) {
        lane.hasEnded = true;
        lane.failure = moved.failure;
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

void TcpBundleIn::discard(Lane& lane, std::size_t bytes) {
    waste_.resize(bytes);
    const iovec place{waste_.data(), bytes};
    lane.left -= note(lane, lane.in.readSome({&place, 1}));
    if (lane.left > 0) return;
    lane.headerBytes = 0;
    if (lane.early.bytes != nullptr) spare_.push_back(std::exchange(lane.early, {}));
}

/// Not left in the socket: behind it may be what is due, written again after a card was lost.
void TcpBundleIn::readEarly(Lane& lane) {
    if (lane.early.bytes == nullptr) lane.early = takeStore(lane.chunk.bytes);
    pieces_.assign(1, {lane.early.bytes.get() + lane.at(), lane.left});
    const std::uint64_t sequence = lane.chunk.sequence;
    const std::size_t left = lane.left;
    if (readChunk(lane, left) < left) return;
    early_.emplace(sequence, std::exchange(lane.early, {}));
}

Moved TcpBundleIn::hand(Lane& lane, std::span<const iovec> pieces) {
    pieces_.clear();
    std::size_t room = lane.left;
    for (const iovec& piece : pieces) {
        if (room == 0) break;
        pieces_.push_back({piece.iov_base, std::min(piece.iov_len, room)});
        room -= pieces_.back().iov_len;
    }
    const std::uint32_t of = lane.chunk.bytes;
    const std::size_t left = lane.left;
    const std::size_t bytes = readChunk(lane, left - room);
    if (bytes == left) noteLate(lane.in.socket.card);
    done(bytes, of);
    return {bytes, false, {}};
}

void TcpBundleIn::noteLate(std::size_t card) {
    late_[card] =
        static_cast<std::uint8_t>(std::min<std::size_t>(late_[card] + early_.size(), 255));
}

/// Into `pieces_`, which are `most` bytes. With the end of a chunk comes the next header, if it is
/// there: one system call less.
std::size_t TcpBundleIn::readChunk(Lane& lane, std::size_t most) {
    TcpChunkHeader following;
    if (most == lane.left) pieces_.push_back({&following, kTcpChunkHeaderBytes});
    const std::size_t got = note(lane, lane.in.readSome(pieces_));
    const std::size_t bytes = std::min(got, most);
    lane.left -= bytes;
    if (lane.left > 0) return bytes;
    lane.chunk = following;
    lane.headerBytes = got - bytes;
    if (lane.hasChunk()) begin(lane);
    return bytes;
}

Moved TcpBundleIn::handEarly(std::span<const iovec> pieces) {
    const auto first = early_.find(next_);
    Store& chunk = first->second;
    Moved moved;
    for (const iovec& piece : pieces) {
        const std::size_t bytes = std::min(piece.iov_len, chunk.size - done_ - moved.bytes);
        std::memcpy(piece.iov_base, chunk.bytes.get() + done_ + moved.bytes, bytes);
        moved.bytes += bytes;
    }
    done(moved.bytes, chunk.size);
    if (first->first < next_) {
        spare_.push_back(std::move(chunk));
        early_.erase(first);
    }
    return moved;
}

TcpBundleIn::Store TcpBundleIn::takeStore(std::size_t bytes) {
    Store store;
    if (spare_.empty()) {
        store.bytes = std::make_unique_for_overwrite<std::byte[]>(kTcpChunkBytes);
    } else {
        store = std::move(spare_.back());
        spare_.pop_back();
    }
    store.size = bytes;
    return store;
}

/// So many bytes of the chunk that is due were handed on.
void TcpBundleIn::done(std::size_t bytes, std::size_t of) {
    done_ += bytes;
    if (done_ < of) return;
    done_ = 0;
    ++next_;
    if (++unsaid_ >= kTcpChunksPerWord) sayHave();
}

void TcpBundleIn::sayHave() {
    std::array<std::byte, TcpWord::kHaveBytes> word{};
    word[0] = std::byte{static_cast<unsigned char>(TcpWord::Kind::kHave)};
    std::memcpy(word.data() + 1, &next_, sizeof(next_));
    std::memcpy(word.data() + 1 + sizeof(next_), late_.data(), late_.size());
    late_ = {};
    // By every way: one may be lost without a sign.
    for (const auto& lane : lanes_) {
        if (!lane->in.socket.fd.isOpen() || lane->hasEnded) continue;
        const ssize_t sent =
            ::send(lane->in.socket.fd.get(), word.data(), word.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0) lane->in.socket.sent += static_cast<std::uint64_t>(sent);
        if (sent == static_cast<ssize_t>(word.size())) unsaid_ = 0;
    }
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
