#include "comm/transport/message_header.hpp"

#include <bit>
#include <cstring>
#include <string>

namespace isthmus {

namespace {

static_assert(std::endian::native == std::endian::little, "the wire order is the memory order");

constexpr std::size_t kCheckedBytes = kFrameHeaderBytes - sizeof(std::uint32_t);

constexpr std::uint64_t kFold = 0xbf58476d1ce4e5b9ULL;

std::uint64_t fold(std::uint64_t mixed, std::uint64_t word) {
    mixed = (mixed ^ word) * kFold;
    return mixed ^ (mixed >> 29);
}

/// Catches a header read from the wrong place or damaged on the way; no protection against malice.
/// Multiply and fold as in splitmix64 (Steele, Lea, Flood, OOPSLA 2014,
/// doi 10.1145/2660193.2660195), in two chains that do not wait for each other.
std::uint32_t checkOf(const std::byte* from) {
    const auto word = [from](std::size_t at) {
        std::uint64_t read = 0;
        std::memcpy(&read, from + at, sizeof(read));
        return read;
    };
    std::uint64_t even = kFrameMagic;
    std::uint64_t odd = kFold;
    std::size_t at = 0;
    for (; at + 16 <= kCheckedBytes; at += 16) {
        even = fold(even, word(at));
        odd = fold(odd, word(at + 8));
    }
    static_assert(kCheckedBytes % 16 == sizeof(std::uint32_t));
    std::uint32_t last = 0;
    std::memcpy(&last, from + at, sizeof(last));
    const std::uint64_t mixed = fold(fold(even, last), odd);
    return static_cast<std::uint32_t>(mixed ^ (mixed >> 32));
}

class FieldWriter {
public:
    explicit FieldWriter(std::byte* to) : to_(to) {}
    template <typename T>
    FieldWriter& put(T value) {
        std::memcpy(to_, &value, sizeof(T));
        to_ += sizeof(T);
        return *this;
    }

private:
    std::byte* to_;
};

class FieldReader {
public:
    explicit FieldReader(const std::byte* from) : from_(from) {}
    template <typename T>
    FieldReader& get(T& value) {
        std::memcpy(&value, from_, sizeof(T));
        from_ += sizeof(T);
        return *this;
    }

private:
    const std::byte* from_;
};

Status checkLengths(const FrameHeader& header) {
    const auto refuse = [&](std::uint64_t limit) {
        return Status::mismatch("frame of kind " + std::to_string(static_cast<int>(header.kind)) +
                                " claims " + std::to_string(header.payloadBytes) +
                                " bytes, at most " + std::to_string(limit) + " are legal here");
    };
    switch (header.kind) {
    case FrameKind::kEager:
        if (header.payloadBytes > kLongestEagerBytes) return refuse(kLongestEagerBytes);
        if (header.payloadBytes != header.messageBytes) return refuse(header.messageBytes);
        return {};
    case FrameKind::kData:
        if (header.payloadBytes > kLongestPieceBytes) return refuse(kLongestPieceBytes);
        if (header.offset > header.messageBytes) return refuse(0);
        if (header.payloadBytes > header.messageBytes - header.offset) {
            return refuse(header.messageBytes - header.offset);
        }
        return {};
    case FrameKind::kControl:
        if (header.payloadBytes > kLongestControlBytes) return refuse(kLongestControlBytes);
        return {};
    case FrameKind::kInvite:
        if (header.payloadBytes > kLongestInvitationBytes) return refuse(kLongestInvitationBytes);
        return {};
    case FrameKind::kWritten:
        if (header.offset > header.messageBytes || header.payloadBytes != 0) return refuse(0);
        return {};
    case FrameKind::kRequest:
    case FrameKind::kGrant:
    case FrameKind::kSendRefused:
    case FrameKind::kReceiveRefused:
    case FrameKind::kCredit:
    case FrameKind::kGoodbye:
    case FrameKind::kRecall:
    case FrameKind::kRecalled:
        return header.payloadBytes == 0 ? Status() : refuse(0);
    }
    return Status::mismatch("frame of unknown kind " +
                            std::to_string(static_cast<int>(header.kind)));
}

}  // namespace

void encode(const FrameHeader& header, std::span<std::byte, kFrameHeaderBytes> to) {
    const MessageTag& tag = header.tag;
    const CallFingerprint& call = header.fingerprint;
    FieldWriter(to.data())
        .put(kFrameMagic)
        .put(kFrameVersion)
        .put(static_cast<std::uint8_t>(header.kind))
        .put(header.payloadBytes)
        .put(header.creditBytes)
        .put(tag.communicator)
        .put(tag.sequence)
        .put(tag.segment)
        .put(tag.index)
        .put(tag.channel)
        .put(tag.from)
        .put(tag.to)
        .put(static_cast<std::uint16_t>(tag.pointToPoint ? 1 : 0))
        .put(call.collective)
        .put(call.type)
        .put(call.op)
        .put(call.flags)
        .put(call.root)
        .put(call.elements)
        .put(call.planDigest)
        .put(header.messageBytes)
        .put(header.offset);
    FieldWriter(to.data() + kCheckedBytes).put(checkOf(to.data()));
}

Result<FrameHeader> decodeFrameHeader(std::span<const std::byte, kFrameHeaderBytes> from) {
    std::uint16_t magic = 0;
    std::uint8_t version = 0;
    std::uint8_t kind = 0;
    std::uint32_t check = 0;
    std::uint16_t pointToPoint = 0;
    FrameHeader header;
    MessageTag& tag = header.tag;
    CallFingerprint& call = header.fingerprint;
    FieldReader reader(from.data());
    reader.get(magic).get(version).get(kind);
    if (magic != kFrameMagic) return Status::mismatch("bytes that do not start a frame");
    if (version != kFrameVersion) {
        return Status::mismatch("frame version " + std::to_string(version) + ", this build reads " +
                                std::to_string(kFrameVersion));
    }
    FieldReader(from.data() + kCheckedBytes).get(check);
    if (check != checkOf(from.data()))
        return Status::mismatch("frame header with a wrong checksum");
    reader.get(header.payloadBytes).get(header.creditBytes);
    reader.get(tag.communicator).get(tag.sequence).get(tag.segment).get(tag.index);
    reader.get(tag.channel).get(tag.from).get(tag.to).get(pointToPoint);
    reader.get(call.collective).get(call.type).get(call.op).get(call.flags).get(call.root);
    reader.get(call.elements).get(call.planDigest).get(header.messageBytes).get(header.offset);
    tag.pointToPoint = pointToPoint != 0;
    header.kind = static_cast<FrameKind>(kind);
    if (Status wrong = checkLengths(header); !wrong.ok()) return wrong;
    return header;
}

}  // namespace isthmus
