#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include "comm/base/log.hpp"
#include "comm/transport/tcp/tcp_bundle.hpp"

namespace isthmus {

namespace {

/// A connection whose peer's system acknowledges nothing for so long, while others are served, is
/// taken for lost: what it carries goes over the others. Nothing is lost or doubled by a mistake.
constexpr Time kStall = std::chrono::seconds(1);
/// How much later than the quickest card one may have a chunk through: below what the passes of a
/// call that are under way take together.
constexpr double kSlack = 1.25;
constexpr double kSlackSeconds = 16e-3;
/// Where ranks share processors one is away for milliseconds: of 4+1 Gbit/s, two ranks a node, 6 ms
/// reach 0.96 of the sum as the median on a loaded machine, 3 ms 0.91.
constexpr double kUnsentSeconds = 6e-3;
constexpr double kLeastUnsent = kTcpChunkBytes;
constexpr double kMostUnsent = 4 << 20;  // what Linux keeps for a socket at most (tcp_wmem)
/// A card that is left alone costs a fiftieth of the time at most to be tried.
constexpr double kForgotten = 50;
constexpr std::chrono::milliseconds kCountEvery{10};
/// After a longer time without a look it is not known how much of it there was nothing to send.
constexpr std::chrono::milliseconds kLongestCount{100};
constexpr double kWeight = 0.2;  // of the latest count
constexpr Time kMeasureEvery = std::chrono::microseconds(500);
constexpr Time kWatchEvery = std::chrono::milliseconds(100);
/// A process that dies loses all its connections, within this.
constexpr Time kTellAfter = std::chrono::milliseconds(300);

}  // namespace

TcpBundleOut::TcpBundleOut(TcpShared& shared, TcpLink& link, std::vector<std::string> names)
    : shared_(shared), names_(std::move(names)), shares_(names_.size()) {
    for (std::size_t at = 0; at < names_.size(); ++at)
        lanes_.push_back(std::make_unique<Lane>(shared, link, at));
}

void TcpBundleOut::opened(std::size_t at, UniqueFd socket) {
    lanes_[at]->out.socket.watch(shared_, std::move(socket));
    lanes_[at]->written = lanes_[at]->out.progress().acknowledged;
    if (isBundle()) limitUnsent(*lanes_[at]);
}

bool TcpBundleOut::isOpen() const {
    return std::any_of(lanes_.begin(), lanes_.end(),
                       [](const auto& lane) { return isUsable(*lane); });
}

Moved TcpBundleOut::writeSome(std::span<const iovec> pieces) {
    if (!isBundle()) return lanes_[0]->out.writeSome(pieces);
    Moved moved;
    push();
    measure();
    Lane* const lane = again_.empty() ? freeLane() : nullptr;
    if (lane == nullptr || kept_ >= kMostTcpChunks) return moved;
    lane->sent.push_back(takeChunk(pieces));
    ++kept_;
    moved.bytes = lane->sent.back()->bytes.size() - kTcpChunkHeaderBytes;
    write(*lane);
    return moved;
}

/// What waits in a socket cannot go another way, and is what keeps the card busy while this process
/// is not on a processor: the same time for each.
void TcpBundleOut::limitUnsent(Lane& lane) {
    const auto most = static_cast<int>(
        std::clamp(lane.bytesPerSecond * kUnsentSeconds, kLeastUnsent, kMostUnsent));
    if (std::abs(most - lane.mostUnsent) <= lane.mostUnsent / 8) return;
    lane.mostUnsent = most;
    ::setsockopt(lane.out.socket.fd.get(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &most, sizeof(most));
}

/// Until it has through what waits there and a chunk more.
double TcpBundleOut::secondsOf(const Lane& lane) const {
    return (lane.waiting + kTcpChunkBytes) / (shares_.of(lane.out.socket.lane) * bytesPerShare_);
}

/// What was slow may be quick by now: tried with a chunk, as seldom as that costs little.
bool TcpBundleOut::isForgotten(const Lane& lane) const {
    const std::chrono::duration<double> idle = measuredAt_ - lane.usedAt;
    return lane.waiting == 0 && idle.count() >= kForgotten * secondsOf(lane);
}

/// That a card has room says little: a slow one has much room, too, and the end of a call would
/// wait for what lies there. So each takes what it has through little later than the quickest
/// would.
TcpBundleOut::Lane* TcpBundleOut::freeLane() const {
    double least = std::numeric_limits<double>::max();
    double leastFree = least;
    Lane* best = nullptr;
    for (const auto& lane : lanes_) {
        if (!isUsable(*lane)) continue;
        const double seconds = isForgotten(*lane) ? 0 : secondsOf(*lane);
        least = std::min(least, seconds);
        if (!lane->out.hasRoom() || isBusy(*lane) || seconds >= leastFree) continue;
        best = lane.get();
        leastFree = seconds;
    }
    return leastFree <= kSlack * least + kSlackSeconds ? best : nullptr;
}

void TcpBundleOut::measure() {
    const auto now = std::chrono::steady_clock::now();
    if (now - measuredAt_ < kMeasureEvery) return;
    measuredAt_ = now;
    for (const auto& lane : lanes_) {
        if (!isUsable(*lane)) continue;
        const TcpOut::Progress progress = lane->out.progress();
        lane->carried = std::min(lane->written, progress.acknowledged);
        lane->waiting = static_cast<double>(lane->written - lane->carried);
    }
    countCarried();
}

/// How fast it goes at present.
void TcpBundleOut::countCarried() {
    const std::chrono::duration<double> span = measuredAt_ - countedAt_;
    if (span < kCountEvery) return;
    countedAt_ = measuredAt_;
    double rate = 0;
    double shares = 0;
    for (const auto& lane : lanes_) {
        const double latest = static_cast<double>(lane->carried - lane->counted) / span.count();
        lane->counted = lane->carried;
        if (span > kLongestCount || !isUsable(*lane)) continue;
        lane->bytesPerSecond += kWeight * (latest - lane->bytesPerSecond);
        rate += lane->bytesPerSecond;
        shares += shares_.of(lane->out.socket.lane);
        limitUnsent(*lane);
    }
    if (rate > 0) bytesPerShare_ = std::max(rate / shares, 1e6);
}

std::unique_ptr<TcpBundleOut::Chunk> TcpBundleOut::takeChunk(std::span<const iovec> pieces) {
    std::unique_ptr<Chunk> chunk;
    if (spare_.empty()) {
        chunk = std::make_unique<Chunk>();
    } else {
        chunk = std::move(spare_.back());
        spare_.pop_back();
    }
    TcpChunkHeader header;
    header.bytes =
        static_cast<std::uint32_t>(std::min<std::size_t>(totalOf(pieces), kTcpChunkBytes));
    header.sequence = chunk->sequence = sequence_++;
    chunk->written = 0;
    chunk->bytes.resize(kTcpChunkHeaderBytes + header.bytes);
    std::memcpy(chunk->bytes.data(), &header, sizeof(header));
    std::size_t at = kTcpChunkHeaderBytes;
    for (const iovec& piece : pieces) {
        const std::size_t bytes = std::min(piece.iov_len, chunk->bytes.size() - at);
        std::memcpy(chunk->bytes.data() + at, piece.iov_base, bytes);
        at += bytes;
    }
    return chunk;
}

std::size_t TcpBundleOut::write(Lane& lane) {
    Chunk& chunk = *lane.sent.back();
    const iovec rest{chunk.bytes.data() + chunk.written, chunk.bytes.size() - chunk.written};
    const Moved moved = lane.out.writeSome({&rest, 1});
    chunk.written += moved.bytes;
    lane.written += moved.bytes;
    lane.waiting += static_cast<double>(moved.bytes);
    lane.usedAt = measuredAt_;
    isQuiet_ = false;
    if (!moved.failure.ok()) lose(lane.out.socket.lane, moved.failure);
    return moved.bytes;
}

std::size_t TcpBundleOut::push() {
    std::size_t total = 0;
    for (const auto& lane : lanes_) {
        if (isUsable(*lane) && isBusy(*lane) && lane->out.hasRoom()) total += write(*lane);
    }
    while (!again_.empty()) {
        Lane* const lane = freeLane();
        if (lane == nullptr) break;
        lane->sent.push_back(std::move(again_.front()));
        again_.pop_front();
        total += write(*lane);
    }
    return total;
}

bool TcpBundleOut::hasRest() const {
    if (!again_.empty()) return true;
    return std::any_of(lanes_.begin(), lanes_.end(),
                       [](const auto& lane) { return isBusy(*lane); });
}

bool TcpBundleOut::canPush() const {
    const bool mayGoOn = std::any_of(lanes_.begin(), lanes_.end(), [](const auto& lane) {
        return isUsable(*lane) && lane->out.hasRoom() && isBusy(*lane);
    });
    return mayGoOn || (!again_.empty() && freeLane() != nullptr);
}

bool TcpBundleOut::hasRoom() const {
    if (!isBundle()) return isUsable(*lanes_[0]) && lanes_[0]->out.hasRoom();
    return kept_ < kMostTcpChunks && again_.empty() && freeLane() != nullptr;
}

void TcpBundleOut::setRoom() {
    for (const auto& lane : lanes_) {
        if (isUsable(*lane)) lane->out.setRoom(true);
    }
}

bool TcpBundleOut::lose(std::size_t at, const Status& why) {
    Lane& lane = *lanes_[at];
    if (!lane.isLost) {
        lane.isLost = true;
        lane.why = lastLoss_ = why;
        isQuiet_ = false;
        lane.out.socket.unwatch(shared_);
        for (auto& chunk : lane.sent) {
            chunk->written = 0;
            again_.push_back(std::move(chunk));
        }
        lane.sent.clear();
        std::sort(again_.begin(), again_.end(), [](const auto& left, const auto& right) {
            return left->sequence < right->sequence;
        });
    }
    return std::any_of(lanes_.begin(), lanes_.end(),
                       [](const auto& each) { return !each->isLost; });
}

void TcpBundleOut::count(std::vector<CardCounters>& cards) const {
    for (const auto& lane : lanes_) lane->out.socket.count(cards);
}

void TcpBundleOut::close() {
    for (const auto& lane : lanes_) {
        if (lane->out.socket.fd.isOpen()) ::shutdown(lane->out.socket.fd.get(), SHUT_WR);
        lane->out.socket.unwatch(shared_);
    }
}

Result<bool> TcpBundleOut::hear(std::size_t at) {
    Lane& lane = *lanes_[at];
    while (true) {
        std::byte* const to = lane.word.data() + lane.heard;
        const ssize_t got =
            ::recv(lane.out.socket.fd.get(), to,
                   lane.heard == 0 ? 1 : lane.word.size() - lane.heard, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
        if (got <= 0)
            return Status::peerLost(got < 0 ? std::strerror(errno) : "closed the connection");
        lane.heard += static_cast<std::size_t>(got);
        lane.out.socket.received += static_cast<std::uint64_t>(got);
        if (lane.word[0] == std::byte{static_cast<unsigned char>(TcpWord::Kind::kBye)}) return true;
        if (lane.word[0] != std::byte{static_cast<unsigned char>(TcpWord::Kind::kHave)})
            return Status::mismatch("says what is no word");
        if (lane.heard < lane.word.size()) continue;
        lane.heard = 0;
        std::uint64_t next = 0;
        TcpLateness late{};
        std::memcpy(&next, lane.word.data() + 1, sizeof(next));
        std::memcpy(late.data(), lane.word.data() + 1 + sizeof(next), sizeof(late));
        have(next, late);
    }
}

void TcpBundleOut::have(std::uint64_t next, const TcpLateness& late) {
    if (next <= had_) return;  // the same word came by every way
    had_ = next;
    shares_.correct(late);
    const auto forget = [&](std::deque<std::unique_ptr<Chunk>>& chunks) {
        // One that is half written must be written to its end.
        while (!chunks.empty() && chunks.front()->sequence < next &&
               (&chunks == &again_ || chunks.front()->isWhole())) {
            spare_.push_back(std::move(chunks.front()));
            chunks.pop_front();
            --kept_;
        }
    };
    for (const auto& lane : lanes_) forget(lane->sent);
    forget(again_);
}

bool TcpBundleOut::isStalled(Lane& lane, Time now) {
    const TcpOut::Progress progress = lane.out.progress();
    isQuiet_ = isQuiet_ && progress.unacknowledged == 0;
    if (progress.unacknowledged == 0 || progress.acknowledged != lane.acknowledged ||
        lane.movedAt == Time{0}) {
        lane.acknowledged = progress.acknowledged;
        lane.movedAt = now;
    }
    return now - lane.movedAt >= kStall;
}

void TcpBundleOut::watch(Time now) {
    for (const auto& lane : lanes_) lane->out.watchWindow(now);
    if (!isBundle() || isQuiet_ || now - watchedAt_ < kWatchEvery) return;
    tellLosses(now);
    if (now - watchedAt_ >= kStall) {  // nobody looked meanwhile
        for (const auto& lane : lanes_) lane->movedAt = Time{0};
    }
    watchedAt_ = now;
    isQuiet_ = !hasRest() && lostAt_ == Time{0};
    std::vector<std::size_t> stalled;
    std::size_t usable = 0;
    for (std::size_t at = 0; at < lanes_.size(); ++at) {
        if (!isUsable(*lanes_[at])) continue;
        ++usable;
        if (isStalled(*lanes_[at], now)) stalled.push_back(at);
    }
    if (stalled.size() == usable) return;  // it is not the card
    for (const std::size_t at : stalled)
        lose(at, Status::peerLost("nothing gets through any more"));
}

void TcpBundleOut::tellLosses(Time now) {
    const auto isUntold = [](const auto& lane) { return lane->isLost && !lane->isTold; };
    if (std::none_of(lanes_.begin(), lanes_.end(), isUntold)) return;
    if (lostAt_ == Time{0}) lostAt_ = now;
    if (now - lostAt_ < kTellAfter || !isOpen()) return;
    lostAt_ = Time{0};
    const auto left =
        std::count_if(lanes_.begin(), lanes_.end(), [](const auto& lane) { return !lane->isLost; });
    for (std::size_t at = 0; at < lanes_.size(); ++at) {
        Lane& lane = *lanes_[at];
        if (!lane.isLost || std::exchange(lane.isTold, true)) continue;
        log(LogLevel::kWarning, "tcp: the way " + names_[at] + " is lost (" + lane.why.what() +
                                    "); it goes on over the other " + std::to_string(left));
    }
}

Time TcpBundleOut::lookWithin() const {
    if (isBundle()) return isQuiet_ || !isOpen() ? Time::max() : kWatchEvery;
    const TcpOut& only = lanes_[0]->out;
    const bool isStuck = only.socket.fd.isOpen() && !only.hasRoom();
    return isStuck ? TcpOut::windowLook(shared_.options) : Time::max();
}

}  // namespace isthmus
