#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "comm/transport/transport.hpp"

namespace isthmus {

/// What a frame is. Values are on the wire.
enum class FrameKind : std::uint8_t {
    kEager = 1,           ///< a whole small message, sent on credit
    kRequest = 2,         ///< "I have a message of this tag and length for you"
    kGrant = 3,           ///< "my receive of this tag and length is in place: stream it"
    kData = 4,            ///< a piece of a granted message
    kSendRefused = 5,     ///< receiver to sender: the lengths differ; mine is messageBytes
    kReceiveRefused = 6,  ///< sender to receiver: the same
    kCredit = 7,          ///< nothing but creditBytes
    kControl = 8,         ///< a message between the engines
    kGoodbye = 9,         ///< the last frame of a process that leaves in order
    kInvite = 10,         ///< kGrant, and the payload says where the peer may write it itself
    kWritten = 11,        ///< sender to receiver: `offset` bytes of it are in your memory
    kRecall = 12,         ///< receiver to sender: write there no more, and say when you have ended
    kRecalled = 13,       ///< sender to receiver: your memory is yours
};

/// The fixed start of every frame: little-endian, kFrameHeaderBytes long, followed by payloadBytes.
struct FrameHeader {
    FrameKind kind = FrameKind::kCredit;
    std::uint32_t payloadBytes = 0;  ///< that follow in this frame
    std::uint32_t creditBytes = 0;   ///< eager bytes the sender of this frame has consumed
    MessageTag tag;
    CallFingerprint fingerprint;
    std::uint64_t messageBytes = 0;  ///< of the whole message
    std::uint64_t offset = 0;        ///< of this piece in it (kData); bytes in place (kWritten)

    bool operator==(const FrameHeader&) const = default;
};

inline constexpr std::size_t kFrameHeaderBytes = 88;
inline constexpr std::uint16_t kFrameMagic = 0x7351;
inline constexpr std::uint8_t kFrameVersion = 2;

/// Longest payloads of one frame. One piece of a large message is 256 KiB: the smallest write that
/// reaches the full rate of a TCP connection (measured on loopback: 16 KiB 26, 64 KiB 51-56,
/// 256 KiB 79-94 Gbit/s), and 2 ms of a 1 Gbit/s link, which is what an urgent message waits.
inline constexpr std::uint32_t kLongestEagerBytes = 64 * 1024;
inline constexpr std::uint32_t kLongestPieceBytes = 256 * 1024;
inline constexpr std::uint32_t kLongestControlBytes = 4096;
inline constexpr std::uint32_t kLongestInvitationBytes = 4096;

void encode(const FrameHeader& header, std::span<std::byte, kFrameHeaderBytes> to);

/// Checks magic, version, header checksum, kind and lengths, in that order; nothing in a returned
/// header needs to be trusted further than that. kMismatch says what is wrong.
Result<FrameHeader> decodeFrameHeader(std::span<const std::byte, kFrameHeaderBytes> from);

}  // namespace isthmus
