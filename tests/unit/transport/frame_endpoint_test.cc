// What a peer that knows the job key can still say wrong: each ends that one connection and nothing
// else. The endpoint is driven by hand, with streams that are vectors.

#include "comm/transport/frame_endpoint.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

namespace isthmus {
namespace {

class ScriptedStream final : public InStream, public OutStream {
public:
    Moved readSome(std::span<const iovec> pieces) override {
        Moved moved;
        for (const iovec& piece : pieces) {
            const std::size_t step = std::min({piece.iov_len, toRead.size() - read, longestRead});
            std::memcpy(piece.iov_base, toRead.data() + read, step);
            read += step;
            moved.bytes += step;
            if (step < piece.iov_len) break;
        }
        return moved;
    }
    Moved writeSome(std::span<const iovec> pieces) override {
        Moved moved;
        for (const iovec& piece : pieces) {
            const std::size_t step = std::min(piece.iov_len, room);
            const auto* const from = static_cast<const std::byte*>(piece.iov_base);
            written.insert(written.end(), from, from + step);
            room -= step;
            moved.bytes += step;
        }
        return moved;
    }
    void say(const FrameHeader& header, std::size_t payloadBytes = 0) {
        std::array<std::byte, kFrameHeaderBytes> raw;
        encode(header, raw);
        toRead.insert(toRead.end(), raw.begin(), raw.end());
        toRead.resize(toRead.size() + payloadBytes, std::byte{7});
    }

    std::vector<std::byte> toRead;
    std::size_t read = 0;
    std::size_t longestRead = 1 << 20;
    std::vector<std::byte> written;
    std::size_t room = 1 << 30;
};

class FrameEndpointTest : public testing::Test, public Carrier, public TransportListener {
protected:
    std::string_view transportName() const override { return "test"; }
    std::string describe() const override { return "test peer"; }
    void connect() override {}
    Endpoint::MappedArena mapped() const override { return {}; }
    void ringDoorbell() override {}
    void announced(Endpoint&, const MessageTag&, const CallFingerprint&, std::uint64_t) override {}
    void control(Endpoint&, std::span<const std::byte> message) override {
        controlBytes += message.size();
    }
    void lost(Endpoint&, const Status&) override {}

    static FrameHeader frame(FrameKind kind, std::uint64_t sequence, std::uint64_t messageBytes,
                             std::uint32_t payloadBytes = 0, std::uint64_t offset = 0) {
        FrameHeader header;
        header.kind = kind;
        header.tag.sequence = sequence;
        header.messageBytes = messageBytes;
        header.payloadBytes = payloadBytes;
        header.offset = offset;
        return header;
    }
    Operation operation(std::uint64_t sequence, std::size_t bytes) {
        Operation made;
        made.tag.sequence = sequence;
        made.pieces = {{memory.data(), bytes}};
        made.owner = this;
        made.done = [](Operation& self, const Status& status) {
            static_cast<FrameEndpointTest*>(self.owner)->outcomes.push_back(status);
        };
        return made;
    }
    /// The next bytes of `from`: read by the endpoint, or given to it.
    static Status moveOn(FrameEndpoint& to, ScriptedStream& from, bool isGiven) {
        if (!isGiven) return to.read(from).failure;
        Status taken;
        while (taken.ok() && from.read < from.toRead.size()) {
            const std::size_t step = std::min(from.longestRead, from.toRead.size() - from.read);
            taken = to.take(std::span(from.toRead).subspan(from.read, step));
            from.read += step;
        }
        return taken;
    }
    std::string complaint() { return endpoint.read(stream).failure.what(); }

    ScriptedStream stream;
    std::vector<std::byte> memory = std::vector<std::byte>(200'000);
    std::vector<Status> outcomes;
    std::size_t controlBytes = 0;
    FrameEndpoint endpoint{{1, 1}, *this, *this};
};

TEST_F(FrameEndpointTest, DataThatNobodyAskedFor) {
    stream.say(frame(FrameKind::kData, 1, 100, 100), 100);
    EXPECT_EQ(complaint(), "data that nobody asked for");
}

TEST_F(FrameEndpointTest, DataOfAnotherLengthOrPlace) {
    Operation receive = operation(1, 100'000);
    endpoint.postRecv(receive);
    stream.say(frame(FrameKind::kData, 1, 100'001, 100), 100);
    EXPECT_EQ(complaint(), "data that does not fit its receive");
}

TEST_F(FrameEndpointTest, DataWithAHole) {
    Operation receive = operation(1, 100'000);
    endpoint.postRecv(receive);
    stream.say(frame(FrameKind::kData, 1, 100'000, 100, 0), 100);
    stream.say(frame(FrameKind::kData, 1, 100'000, 100, 200), 100);
    EXPECT_EQ(complaint(), "data that does not fit its receive");
    EXPECT_EQ(receive.moved, 100U);
}

TEST_F(FrameEndpointTest, MoreThanTheWindow) {
    for (std::uint64_t at = 0; at < 40; ++at) {
        stream.say(frame(FrameKind::kEager, at, 32'000, 32'000), 32'000);
    }
    std::string said;
    for (int at = 0; at < 3 && said.empty(); ++at) said = complaint();
    EXPECT_EQ(said, "more sent than its window holds");
}

TEST_F(FrameEndpointTest, MoreCreditThanWasUsed) {
    FrameHeader header = frame(FrameKind::kCredit, 0, 0);
    header.creditBytes = 1;
    stream.say(header);
    EXPECT_EQ(complaint(), "more credit returned than was used");
}

TEST_F(FrameEndpointTest, TwoMessagesOfOneTag) {
    stream.say(frame(FrameKind::kEager, 1, 10, 10), 10);
    stream.say(frame(FrameKind::kRequest, 1, 10));
    EXPECT_EQ(complaint(), "two messages of one tag");
}

TEST_F(FrameEndpointTest, LengthsBeyondMemoryCostNothing) {
    for (std::uint64_t at = 0; at < 1000; ++at) {
        stream.say(frame(FrameKind::kRequest, at, ~0ULL));
        stream.say(frame(FrameKind::kGrant, at, ~0ULL));
    }
    EXPECT_EQ(complaint(), "");
    // Whoever meets such a message learns that the lengths differ.
    Operation receive = operation(5, 100);
    Operation send = operation(6, 100);
    endpoint.postRecv(receive);
    endpoint.postSend(send);
    endpoint.complete();
    ASSERT_EQ(outcomes.size(), 2U);
    EXPECT_EQ(outcomes[0].code(), Status::Code::kMismatch);
    EXPECT_EQ(outcomes[1].code(), Status::Code::kMismatch);
}

TEST_F(FrameEndpointTest, RandomFramesNeverBreakAnything) {
    std::mt19937_64 random(17);
    for (int run = 0; run < 2000; ++run) {
        FrameEndpoint victim({1, 1}, *this, *this);
        ScriptedStream mixed;
        mixed.longestRead = 1 + random() % 5000;
        std::vector<std::unique_ptr<Operation>> posted;
        for (int at = 0; at < 8; ++at) {
            posted.push_back(
                std::make_unique<Operation>(operation(random() % 8, random() % 70'000)));
        }
        for (int at = 0; at < 30; ++at) {
            const auto kind = static_cast<FrameKind>(1 + random() % 8);
            const bool hasPayload = kind == FrameKind::kEager || kind == FrameKind::kData ||
                                    kind == FrameKind::kControl;
            const auto payload = static_cast<std::uint32_t>(hasPayload ? random() % 4000 : 0);
            const std::uint64_t message =
                kind == FrameKind::kEager ? payload : payload + random() % 70'000;
            mixed.say(frame(kind, random() % 8, message, payload), payload);
        }
        std::size_t next = 0;
        bool isOver = false;
        for (int step = 0; step < 200; ++step) {
            if (next < posted.size() && step % 3 == 0) {
                (next % 2 == 0) ? victim.postRecv(*posted[next]) : victim.postSend(*posted[next]);
                ++next;
            }
            const Status moved = moveOn(victim, mixed, run % 2 == 1);
            isOver = isOver || !moved.ok();
            if (isOver) victim.fail(moved);
            victim.write(mixed);
            if (step == 100) victim.cancel(0, Status::aborted("enough"));
            victim.complete();
        }
        victim.fail(Status::peerLost("end"));
        while (victim.hasNews()) victim.complete();
    }
    EXPECT_EQ(outcomes.size(), 2000U * 8U);  // each once
}

TEST_F(FrameEndpointTest, EveryCutOfTheStreamGivesTheSameFrames) {
    for (std::size_t at = 0; at < 58; ++at) {
        const bool isGiven = at % 2 == 1;
        FrameEndpoint each({1, 1}, *this, *this);
        ScriptedStream cut;
        cut.longestRead = 1 + at / 2 * 7;
        Operation receive = operation(1, 3000);
        outcomes.clear();
        controlBytes = 0;
        std::fill(memory.begin(), memory.end(), std::byte{0});
        each.postRecv(receive);
        cut.say(frame(FrameKind::kControl, 0, 0, 1000), 1000);
        cut.say(frame(FrameKind::kEager, 1, 3000, 3000), 3000);
        cut.say(frame(FrameKind::kControl, 0, 0, 11), 11);
        ASSERT_TRUE(moveOn(each, cut, isGiven).ok());
        each.complete();
        ASSERT_EQ(outcomes.size(), 1U) << cut.longestRead;
        EXPECT_TRUE(outcomes[0].ok());
        EXPECT_EQ(controlBytes, 1011U);
        EXPECT_EQ(std::count(memory.begin(), memory.end(), std::byte{7}), 3000);
        EXPECT_EQ(each.counters().receivedTotal, 3 * kFrameHeaderBytes + 4011);
    }
}

TEST_F(FrameEndpointTest, CancelInTheMiddleOfAFrameLeavesTheStreamWhole) {
    Operation send = operation(1, 200'000);
    endpoint.opened();
    endpoint.postSend(send);
    stream.say(frame(FrameKind::kGrant, 1, 200'000));
    ASSERT_TRUE(endpoint.read(stream).failure.ok());
    stream.room = 50'000;
    endpoint.write(stream);
    endpoint.cancel(0, Status::aborted("given up"));
    endpoint.complete();
    ASSERT_EQ(outcomes.size(), 1U);
    std::fill(memory.begin(), memory.end(), std::byte{0xEE});  // it is ours again
    const Bytes message(5, std::byte{1});
    endpoint.sendControl(message);
    stream.room = 1 << 30;
    endpoint.write(stream);
    // Request, one frame of 200000 bytes of the old content, the control message.
    ASSERT_EQ(stream.written.size(), 3 * kFrameHeaderBytes + 200'000 + 5);
    const std::size_t payload = 2 * kFrameHeaderBytes;
    for (std::size_t at = 0; at < 200'000; ++at) {
        ASSERT_NE(stream.written[payload + at], std::byte{0xEE}) << at;
    }
}

TEST_F(FrameEndpointTest, AReceiveIsTakenBackUntilItsMessageComesOrMayCome) {
    Operation small = operation(1, 100);
    endpoint.postRecv(small);
    EXPECT_TRUE(endpoint.withdraw(small));
    EXPECT_FALSE(endpoint.withdraw(small));
    stream.say(frame(FrameKind::kEager, 1, 100, 100), 100);
    EXPECT_EQ(complaint(), "");
    EXPECT_EQ(endpoint.complete(), 0);
    Operation next = operation(1, 100);
    endpoint.postRecv(next);
    EXPECT_FALSE(endpoint.withdraw(next));  // it has its message
    EXPECT_EQ(endpoint.complete(), 1);

    Operation large = operation(2, 100'000);
    endpoint.postRecv(large);
    EXPECT_FALSE(endpoint.withdraw(large));  // its sender was told

    Operation requested = operation(3, 100);  // as by a sender that has no credit
    endpoint.postRecv(requested);
    stream.say(frame(FrameKind::kRequest, 3, 100));
    EXPECT_EQ(complaint(), "");
    EXPECT_FALSE(endpoint.withdraw(requested));

    Operation inside = operation(4, 100);
    endpoint.postRecv(inside);
    stream.say(frame(FrameKind::kEager, 4, 100, 100), 40);
    EXPECT_EQ(complaint(), "");
    EXPECT_FALSE(endpoint.withdraw(inside));
    EXPECT_EQ(outcomes.size(), 1U);
}

}  // namespace
}  // namespace isthmus
