#include "comm/transport/byte_ring.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <new>
#include <thread>
#include <vector>

namespace isthmus {
namespace {

class ByteRing : public testing::Test {
protected:
    ByteRing() : memory(static_cast<std::byte*>(::operator new(kRingMemoryBytes, kAlign))) {
        std::memset(memory, 0, kRingMemoryBytes);
    }
    ~ByteRing() override { ::operator delete(memory, kAlign); }

    static constexpr std::align_val_t kAlign{128};
    std::byte* memory;
};

iovec over(std::vector<std::byte>& data) {
    return {data.data(), data.size()};
}

TEST_F(ByteRing, TakesWhatFitsAndNoMore) {
    RingWriter writer(memory);
    RingReader reader(memory);
    std::vector<std::byte> data(kRingBytes + 1);
    const iovec piece = over(data);
    EXPECT_FALSE(reader.hasBytes());
    EXPECT_EQ(writer.writeSome({&piece, 1}).bytes, kRingBytes);
    EXPECT_FALSE(writer.hasRoom());
    EXPECT_EQ(writer.writeSome({&piece, 1}).bytes, 0U);
    std::vector<std::byte> target(1000);
    const iovec into = over(target);
    EXPECT_EQ(reader.readSome({&into, 1}).bytes, 1000U);
    EXPECT_EQ(writer.writeSome({&piece, 1}).bytes, 1000U);
}

TEST_F(ByteRing, KeepsEveryByteBetweenThreads) {
    constexpr std::uint64_t kTotal = 40'000'000;
    std::thread producer([this] {
        RingWriter writer(memory);
        std::vector<std::byte> data(70'001);
        std::uint64_t sent = 0;
        while (sent < kTotal) {
            const std::size_t bytes =
                std::min<std::uint64_t>(1 + sent % data.size(), kTotal - sent);
            for (std::size_t at = 0; at < bytes; ++at) {
                data[at] = static_cast<std::byte>((sent + at) % 251);
            }
            std::size_t done = 0;
            while (done < bytes) {
                const iovec piece{data.data() + done, bytes - done};
                const std::size_t moved = writer.writeSome({&piece, 1}).bytes;
                if (moved == 0) std::this_thread::yield();
                done += moved;
            }
            sent += bytes;
        }
    });
    RingReader reader(memory);
    std::vector<std::byte> data(50'003);
    std::uint64_t got = 0;
    std::uint64_t wrong = 0;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (got < kTotal && std::chrono::steady_clock::now() < end) {
        const iovec pieces[] = {{data.data(), 17}, {data.data() + 17, data.size() - 17}};
        const std::size_t bytes = reader.readSome(pieces).bytes;
        for (std::size_t at = 0; at < bytes; ++at) {
            wrong += data[at] != static_cast<std::byte>((got + at) % 251);
        }
        got += bytes;
        if (bytes == 0) std::this_thread::yield();
    }
    producer.join();
    EXPECT_EQ(got, kTotal);
    EXPECT_EQ(wrong, 0U);
}

TEST_F(ByteRing, PositionsOfALyingPeerEndTheStream) {
    auto* positions = reinterpret_cast<RingPositions*>(memory);
    std::vector<std::byte> data(10);
    const iovec piece = over(data);
    RingReader reader(memory);
    positions->head.store(kRingBytes + 1);
    EXPECT_EQ(reader.readSome({&piece, 1}).failure.code(), Status::Code::kMismatch);

    std::memset(memory, 0, kRingMemoryBytes);
    std::vector<std::byte> large(kRingBytes);
    const iovec whole = over(large);
    RingWriter writer(memory);
    ASSERT_EQ(writer.writeSome({&whole, 1}).bytes, kRingBytes);
    positions->tail.store(kRingBytes + 1);  // more was read than was written
    EXPECT_EQ(writer.writeSome({&piece, 1}).failure.code(), Status::Code::kMismatch);
}

}  // namespace
}  // namespace isthmus
