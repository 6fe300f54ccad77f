#include "comm/transport/rma/rma_mover.hpp"

#include <algorithm>

#include "comm/base/bytes.hpp"
#include "comm/transport/message_header.hpp"

namespace isthmus {

namespace {

/// What leaves in one put, and how much of one peer's is under way at once: an urgent message waits
/// for that much. 4 MiB are 0.3 ms of a link of 100 Gbit/s, many times its round trip.
constexpr std::uint64_t kPutBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kWindowBytes = std::uint64_t{4} << 20;
/// Of one message. More of them are shorter, and gain nothing over a copy.
constexpr std::size_t kMostPieces = 16;

/// The place of message byte `offset` in a list of things that have bytes.
struct Place {
    std::size_t index = 0;
    std::uint64_t offset = 0;
};

template <typename List, typename BytesOf>
Place placeOf(const List& list, std::uint64_t offset, const BytesOf& bytesOf) {
    Place place{0, offset};
    while (place.offset >= bytesOf(list[place.index])) place.offset -= bytesOf(list[place.index++]);
    return place;
}

}  // namespace

RmaMover::~RmaMover() {
    for (const auto& [operation, pieces] : open_) deregisterAll(pieces);
    for (const auto& [operation, way] : ways_) drop(way);
}

bool RmaMover::hasRoom() const {
    return !isFull_ && inFlight_ < kWindowBytes;
}

bool RmaMover::isWorthIt(const Operation& operation) const {
    const auto pieces = std::count_if(operation.pieces.begin(), operation.pieces.end(),
                                      [](const MemoryPiece& piece) { return piece.bytes > 0; });
    const RmaLimits& limits = device_.limits();
    return limits.transferBytes > 0 && limits.isRegistrationCheap &&
           totalBytes(operation) >= leastBytes_ &&
           pieces <= static_cast<std::ptrdiff_t>(kMostPieces);
}

std::vector<RmaMover::Piece> RmaMover::registerAll(const Operation& operation) {
    std::vector<Piece> pieces;
    for (const MemoryPiece& memory : operation.pieces) {
        if (memory.bytes == 0) continue;
        const auto region = device_.registerMemory(memory.address, memory.bytes);
        if (!region.ok()) {
            deregisterAll(pieces);
            return {};
        }
        pieces.push_back({memory, *region});
    }
    return pieces;
}

void RmaMover::deregisterAll(const std::vector<Piece>& pieces) {
    for (const Piece& piece : pieces) device_.deregister(piece.region);
}

Bytes RmaMover::invite(const Operation& receive) {
    if (!isWorthIt(receive)) return {};
    std::vector<Piece> pieces = registerAll(receive);
    ByteWriter writer;
    for (const Piece& piece : pieces) {
        writer.put(reinterpret_cast<std::uint64_t>(piece.memory.address))
            .put(static_cast<std::uint64_t>(piece.memory.bytes))
            .put(std::span<const std::byte>(device_.key(piece.region)));
    }
    Bytes invitation = writer.take();
    if (invitation.empty() || invitation.size() > kLongestInvitationBytes) {
        deregisterAll(pieces);
        return {};
    }
    open_[&receive] = std::move(pieces);
    return invitation;
}

void RmaMover::close(const Operation& receive) {
    const auto found = open_.find(&receive);
    if (found == open_.end()) return;
    deregisterAll(found->second);
    open_.erase(found);
}

bool RmaMover::readTargets(std::span<const std::byte> invitation, std::uint64_t bytes,
                           std::vector<Target>& to) {
    ByteReader reader(invitation);
    while (reader.ok() && !reader.atEnd() && to.size() < kMostPieces) {
        Target target;
        target.address = reader.get<std::uint64_t>();
        target.bytes = reader.get<std::uint64_t>();
        const auto raw = reader.getBytes();
        if (!reader.ok() || target.bytes == 0 || target.bytes > bytes) return false;
        bytes -= target.bytes;
        const auto key = device_.importKey(peer_, raw);
        if (!key.ok()) return false;
        target.key = *key;
        to.push_back(target);
    }
    return reader.ok() && reader.atEnd() && bytes == 0;
}

bool RmaMover::accept(const Operation& send, std::span<const std::byte> invitation) {
    if (peer_ == RmaPeer{} || !isWorthIt(send)) return false;
    Way way;
    if (readTargets(invitation, totalBytes(send), way.to)) way.from = registerAll(send);
    if (way.from.empty()) {
        drop(way);
        return false;
    }
    ways_[&send] = std::move(way);
    return true;
}

void RmaMover::drop(const Way& way) {
    for (const Target& target : way.to) device_.dropKey(target.key);
    deregisterAll(way.from);
}

std::uint64_t RmaMover::put(Operation& send) {
    if (!hasRoom()) return 0;
    const Way& way = ways_.at(&send);
    const Place from =
        placeOf(way.from, send.moved, [](const Piece& each) { return each.memory.bytes; });
    const Place to = placeOf(way.to, send.moved, [](const Target& each) { return each.bytes; });
    const Piece& piece = way.from[from.index];
    const Target& target = way.to[to.index];
    RmaTransfer transfer;
    transfer.local = piece.memory.address + from.offset;
    transfer.localRegion = piece.region;
    transfer.remote = target.address + to.offset;
    transfer.key = target.key;
    transfer.bytes = static_cast<std::size_t>(std::min(
        {static_cast<std::uint64_t>(piece.memory.bytes) - from.offset, target.bytes - to.offset,
         static_cast<std::uint64_t>(device_.limits().transferBytes), kPutBytes}));
    transfer.context = ++puts_.lastContext;
    if (device_.put(peer_, transfer) != RmaPost::kTaken) {
        isFull_ = true;  // a peer that is gone is told by the device
        return 0;
    }
    puts_.underWay[transfer.context] = {&link_, &send, transfer.bytes};
    inFlight_ += transfer.bytes;
    return transfer.bytes;
}

void RmaMover::release(const Operation& send) {
    const auto found = ways_.find(&send);
    if (found == ways_.end()) return;
    drop(found->second);
    ways_.erase(found);
}

}  // namespace isthmus
