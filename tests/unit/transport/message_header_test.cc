#include "comm/transport/message_header.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>

namespace isthmus {
namespace {

using Raw = std::array<std::byte, kFrameHeaderBytes>;

FrameHeader sample() {
    FrameHeader header;
    header.kind = FrameKind::kData;
    header.payloadBytes = 1000;
    header.creditBytes = 77;
    header.tag = {0x1122334455667788ULL, 42, 3, 4, 5, 6, 7, true};
    header.fingerprint = {1, 2, 3, 4, -5, 600, 0xabcdefULL};
    header.messageBytes = 6ULL << 30;  // beyond 32 bits
    header.offset = 5ULL << 30;
    return header;
}

Raw encoded(const FrameHeader& header) {
    Raw raw{};
    encode(header, raw);
    return raw;
}

TEST(FrameHeader, SurvivesTheWire) {
    const auto read = decodeFrameHeader(encoded(sample()));
    ASSERT_TRUE(read.ok()) << read.status().what();
    EXPECT_EQ(*read, sample());
}

TEST(FrameHeader, LayoutIsFixed) {
    const Raw raw = encoded(sample());
    EXPECT_EQ(raw[0], std::byte{0x51});
    EXPECT_EQ(raw[1], std::byte{0x73});
    EXPECT_EQ(raw[2], std::byte{2});     // version
    EXPECT_EQ(raw[3], std::byte{4});     // kData
    EXPECT_EQ(raw[4], std::byte{0xE8});  // 1000 = 0x03E8
    EXPECT_EQ(raw[5], std::byte{0x03});
    EXPECT_EQ(raw[12], std::byte{0x88});  // the communicator, lowest byte first
}

TEST(FrameHeader, EveryFlippedBitIsNoticed) {
    const Raw good = encoded(sample());
    for (std::size_t bit = 0; bit < 8 * kFrameHeaderBytes; ++bit) {
        Raw raw = good;
        raw[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
        EXPECT_FALSE(decodeFrameHeader(raw).ok()) << "bit " << bit;
    }
}

TEST(FrameHeader, LengthsAreCheckedBeforeAnythingElseIsDone) {
    const auto code = [](FrameKind kind, std::uint32_t payload, std::uint64_t message,
                         std::uint64_t offset) {
        FrameHeader header = sample();
        header.kind = kind;
        header.payloadBytes = payload;
        header.messageBytes = message;
        header.offset = offset;
        return decodeFrameHeader(encoded(header)).status().code();
    };
    const auto kOk = Status::Code::kOk;
    const auto kBad = Status::Code::kMismatch;
    EXPECT_EQ(code(FrameKind::kEager, 0xffffffffU, 0xffffffffU, 0), kBad);
    EXPECT_EQ(code(FrameKind::kEager, 100, 101, 0), kBad);
    EXPECT_EQ(code(FrameKind::kEager, 65536, 65536, 0), kOk);
    EXPECT_EQ(code(FrameKind::kEager, 65537, 65537, 0), kBad);
    EXPECT_EQ(code(FrameKind::kData, 262144, ~0ULL, 0), kOk);
    EXPECT_EQ(code(FrameKind::kData, 262145, ~0ULL, 0), kBad);
    EXPECT_EQ(code(FrameKind::kData, 100, 1000, 900), kOk);
    EXPECT_EQ(code(FrameKind::kData, 101, 1000, 900), kBad);
    EXPECT_EQ(code(FrameKind::kData, 100, 1000, ~0ULL - 50), kBad);  // the sum would wrap
    EXPECT_EQ(code(FrameKind::kControl, 4096, 0, 0), kOk);
    EXPECT_EQ(code(FrameKind::kControl, 4097, 0, 0), kBad);
    EXPECT_EQ(code(FrameKind::kGrant, 1, 1, 0), kBad);
    EXPECT_EQ(code(FrameKind::kRequest, 0, ~0ULL, 0), kOk);
    EXPECT_EQ(code(static_cast<FrameKind>(0), 0, 0, 0), kBad);
    EXPECT_EQ(code(FrameKind::kInvite, 4096, 1, 0), kOk);
    EXPECT_EQ(code(FrameKind::kInvite, 4097, 1, 0), kBad);
    EXPECT_EQ(code(FrameKind::kWritten, 0, 10, 10), kOk);
    EXPECT_EQ(code(FrameKind::kWritten, 0, 10, 11), kBad);
    EXPECT_EQ(code(FrameKind::kRecall, 1, 10, 0), kBad);
    EXPECT_EQ(code(FrameKind::kRecalled, 0, 10, 0), kOk);
    EXPECT_EQ(code(static_cast<FrameKind>(14), 0, 0, 0), kBad);
    EXPECT_EQ(code(static_cast<FrameKind>(255), 0, 0, 0), kBad);
}

TEST(FrameHeader, RandomBytesAreNone) {
    std::mt19937_64 random(1);
    for (int run = 0; run < 10'000; ++run) {
        Raw raw;
        for (std::byte& byte : raw) byte = static_cast<std::byte>(random());
        if (run % 2 == 0) std::memcpy(raw.data(), "\x51\x73\x01\x01", 4);
        EXPECT_FALSE(decodeFrameHeader(raw).ok());
    }
}

}  // namespace
}  // namespace isthmus
