// What an endpoint does with payloads that its mover carries past the streams. The streams are
// vectors, the mover does what the test says, and the two endpoints are driven by hand.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <unordered_map>

#include "comm/transport/frame_endpoint.hpp"

namespace isthmus {
namespace {

class Wire final : public InStream, public OutStream {
public:
    Moved readSome(std::span<const iovec> pieces) override {
        Moved moved;
        for (const iovec& piece : pieces) {
            for (std::size_t at = 0; at < piece.iov_len && !bytes.empty(); ++at, ++moved.bytes) {
                static_cast<std::byte*>(piece.iov_base)[at] = bytes.front();
                bytes.pop_front();
            }
        }
        return moved;
    }
    Moved writeSome(std::span<const iovec> pieces) override {
        Moved moved;
        for (const iovec& piece : pieces) {
            const auto* const from = static_cast<const std::byte*>(piece.iov_base);
            bytes.insert(bytes.end(), from, from + piece.iov_len);
            moved.bytes += piece.iov_len;
        }
        return moved;
    }

    std::deque<std::byte> bytes;
};

/// Invitations are addresses; a put is remembered and happens when the test says so.
class Mover final : public DirectMover {
public:
    Bytes invite(const Operation& receive) override {
        if (!canInvite) return {};
        ++open;
        const auto raw = std::as_bytes(std::span(&receive.pieces[0].address, 1));
        return {raw.begin(), raw.end()};
    }
    void close(const Operation&) override { --open; }
    bool accept(const Operation& send, std::span<const std::byte> invitation) override {
        if (!canAccept) return false;
        std::byte* to = nullptr;
        std::memcpy(&to, invitation.data(), sizeof(to));
        targets[&send] = to;
        return true;
    }
    std::uint64_t put(Operation& send) override {
        if (puts.size() >= room) return 0;
        const std::uint64_t bytes = std::min<std::uint64_t>(100'000, totalBytes(send) - send.moved);
        puts.push_back({&send, send.moved, bytes});
        return bytes;
    }
    void release(const Operation& send) override { targets.erase(&send); }

    struct Put {
        Operation* send;
        std::uint64_t offset;
        std::uint64_t bytes;
    };
    bool canInvite = true;
    bool canAccept = true;
    std::size_t room = 2;
    int open = 0;
    std::unordered_map<const Operation*, std::byte*> targets;
    std::deque<Put> puts;
};

class Side final : public Carrier, public TransportListener {
public:
    std::string_view transportName() const override { return "test"; }
    std::string describe() const override { return "test peer"; }
    void connect() override {}
    Endpoint::MappedArena mapped() const override { return {}; }
    void ringDoorbell() override {}
    void announced(Endpoint&, const MessageTag&, const CallFingerprint&, std::uint64_t) override {
        ++announcements;
    }
    void control(Endpoint&, std::span<const std::byte>) override {}
    void lost(Endpoint&, const Status&) override { ++losses; }

    void movePut(const Status& outcome = {}) {
        const Mover::Put put = mover.puts.front();
        mover.puts.pop_front();
        if (outcome.ok()) {
            std::memcpy(mover.targets.at(put.send) + put.offset,
                        put.send->pieces[0].address + put.offset, put.bytes);
        }
        endpoint.written(*put.send, put.bytes, outcome);
    }

    int announcements = 0;
    int losses = 0;
    Mover mover;
    Wire out;
    const ProcessId peer{1, 1};
    const FlowLimits limits{};
    FrameEndpoint endpoint{peer, *this, *this, limits, &mover};
};

class Direct : public testing::Test {
protected:
    void SetUp() override {
        from.endpoint.opened();
        to.endpoint.opened();
        for (std::size_t at = 0; at < source.size(); ++at) source[at] = std::byte(at * 31 >> 3);
    }
    Operation operation(std::vector<std::byte>& memory, std::uint64_t sequence = 1) {
        Operation made;
        made.tag.sequence = sequence;
        made.pieces = {{memory.data(), memory.size()}};
        made.owner = this;
        made.done = [](Operation& self, const Status& status) {
            static_cast<Direct*>(self.owner)->outcomes[&self] = status;
        };
        return made;
    }
    /// Frames both ways and what the movers take, but no put.
    void talk() {
        for (int round = 0; round < 4; ++round) {
            from.endpoint.write(from.out);
            to.endpoint.write(to.out);
            complaint = to.endpoint.read(from.out).failure;
            if (complaint.ok()) complaint = from.endpoint.read(to.out).failure;
            from.endpoint.moveDirectly();
            from.endpoint.complete();
            to.endpoint.complete();
        }
    }
    bool isDone(const Operation& each) const { return outcomes.contains(&each); }

    Side from;
    Side to;
    std::vector<std::byte> source = std::vector<std::byte>(350'000);
    std::vector<std::byte> target = std::vector<std::byte>(350'000);
    std::map<const Operation*, Status> outcomes;
    Status complaint;
    Operation send = operation(source);
    Operation receive = operation(target);
};

TEST_F(Direct, PiecesGoStraightToTheirReceive) {
    to.endpoint.postRecv(receive);
    from.endpoint.postSend(send);
    talk();
    ASSERT_EQ(from.mover.puts.size(), 2U);  // there is room for two
    EXPECT_EQ(to.mover.open, 1);
    from.movePut();
    talk();
    EXPECT_EQ(receive.moved, 100'000U);
    EXPECT_FALSE(isDone(send));
    while (!from.mover.puts.empty()) {
        from.movePut();
        talk();
    }
    ASSERT_TRUE(isDone(send) && isDone(receive));
    EXPECT_TRUE(outcomes[&send].ok() && outcomes[&receive].ok());
    EXPECT_EQ(target, source);
    EXPECT_EQ(to.mover.open, 0);
    EXPECT_TRUE(from.mover.targets.empty());
    EXPECT_EQ(from.endpoint.counters().sentPayload, 350'000U);
    EXPECT_EQ(to.endpoint.counters().receivedPayload, 350'000U);
    EXPECT_GE(to.announcements, 1);
}

TEST_F(Direct, TheSenderMayBeFirst) {
    from.endpoint.postSend(send);
    talk();
    to.endpoint.postRecv(receive);
    talk();
    while (!from.mover.puts.empty()) {
        from.movePut();
        talk();
    }
    ASSERT_TRUE(isDone(send) && isDone(receive));
    EXPECT_EQ(target, source);
}

TEST_F(Direct, WhoCannotStreamsInstead) {
    for (const bool isReceiver : {true, false}) {
        outcomes.clear();
        std::fill(target.begin(), target.end(), std::byte{0});
        to.mover.canInvite = !isReceiver;
        from.mover.canAccept = isReceiver;
        to.endpoint.postRecv(receive);
        from.endpoint.postSend(send);
        talk();
        ASSERT_TRUE(isDone(send) && isDone(receive));
        EXPECT_EQ(target, source);
        EXPECT_TRUE(from.mover.puts.empty());
        EXPECT_EQ(to.mover.open, 0);
    }
}

TEST_F(Direct, ACancelledReceiveWaitsForItsMemory) {
    to.endpoint.postRecv(receive);
    from.endpoint.postSend(send);
    talk();
    ASSERT_EQ(from.mover.puts.size(), 2U);
    to.endpoint.cancel(0, Status::aborted("enough"));
    talk();
    EXPECT_FALSE(isDone(receive));  // two puts may still land
    EXPECT_TRUE(to.endpoint.isHolding());
    from.movePut();
    talk();
    EXPECT_FALSE(isDone(receive));
    from.movePut();
    talk();
    ASSERT_TRUE(isDone(send) && isDone(receive));
    EXPECT_EQ(outcomes[&receive].what(), "enough");
    EXPECT_TRUE(outcomes[&send].ok());  // its memory is free, nobody wanted the rest
    EXPECT_EQ(to.mover.open, 0);
    EXPECT_TRUE(complaint.ok()) << complaint.what();
    EXPECT_FALSE(to.endpoint.isHolding() || from.endpoint.isHolding());
}

TEST_F(Direct, ACancelledSendWaitsForItsPuts) {
    to.endpoint.postRecv(receive);
    from.endpoint.postSend(send);
    talk();
    from.endpoint.cancel(0, Status::aborted("enough"));
    talk();
    EXPECT_FALSE(isDone(send));
    from.movePut();
    from.movePut();
    talk();
    ASSERT_TRUE(isDone(send));
    EXPECT_EQ(outcomes[&send].what(), "enough");
    EXPECT_FALSE(isDone(receive));
    to.endpoint.cancel(0, Status::aborted("enough here"));
    talk();
    ASSERT_TRUE(isDone(receive));
    EXPECT_EQ(outcomes[&receive].what(), "enough here");
}

TEST_F(Direct, AnInvitationThatNobodyUsedIsTakenBack) {
    to.endpoint.postRecv(receive);
    talk();
    to.endpoint.cancel(0, Status::aborted("enough"));
    talk();
    EXPECT_TRUE(isDone(receive));
    EXPECT_TRUE(complaint.ok());
}

TEST_F(Direct, TheEndOfThePeerWaitsForTheDevice) {
    to.endpoint.postRecv(receive);
    from.endpoint.postSend(send);
    talk();
    from.endpoint.fail(Status::peerLost("gone"));
    to.endpoint.fail(Status::peerLost("gone"));
    from.endpoint.complete();
    to.endpoint.complete();
    EXPECT_FALSE(isDone(send) || isDone(receive));
    EXPECT_EQ(from.losses + to.losses, 0);
    from.movePut(Status::aborted("disconnected"));
    from.movePut();
    from.endpoint.released();
    to.endpoint.released();
    from.endpoint.complete();
    to.endpoint.complete();
    ASSERT_TRUE(isDone(send) && isDone(receive));
    EXPECT_EQ(outcomes[&send].what(), "gone");
    EXPECT_EQ(outcomes[&receive].what(), "gone");
    EXPECT_EQ(from.losses, 1);
    EXPECT_EQ(to.losses, 1);
    EXPECT_EQ(to.mover.open, 0);
}

TEST_F(Direct, APutThatFailsEndsTheConnection) {
    to.endpoint.postRecv(receive);
    from.endpoint.postSend(send);
    talk();
    from.movePut(Status::mismatch("no such memory"));
    from.movePut();
    from.endpoint.released();
    from.endpoint.complete();
    ASSERT_TRUE(isDone(send));
    EXPECT_EQ(outcomes[&send].code(), Status::Code::kPeerLost);
    EXPECT_NE(outcomes[&send].what().find("no such memory"), std::string::npos);
}

TEST_F(Direct, TheMoreUrgentGoesFirst) {
    std::vector<std::byte> otherSource(150'000, std::byte{3});
    std::vector<std::byte> otherTarget(150'000);
    Operation urgent = operation(otherSource, 2);
    Operation urgentReceive = operation(otherTarget, 2);
    send.priority = 4;
    to.endpoint.postRecv(receive);
    to.endpoint.postRecv(urgentReceive);
    from.endpoint.postSend(send);
    talk();
    from.endpoint.postSend(urgent);
    talk();
    from.movePut();
    from.endpoint.moveDirectly();
    EXPECT_EQ(from.mover.puts.back().send, &urgent);
}

TEST_F(Direct, WrittenFramesThatFitNothingEndTheConnection) {
    const auto say = [&](FrameKind kind, std::uint64_t messageBytes, std::uint64_t offset) {
        Side victim;
        victim.endpoint.opened();
        Operation each = operation(target);
        victim.endpoint.postRecv(each);
        FrameHeader header;
        header.kind = kind;
        header.tag = each.tag;
        header.messageBytes = messageBytes;
        header.offset = offset;
        std::array<std::byte, kFrameHeaderBytes> raw;
        encode(header, raw);
        Wire wire;
        wire.bytes.assign(raw.begin(), raw.end());
        const Status said = victim.endpoint.read(wire).failure;
        victim.endpoint.fail(Status::peerLost("end"));
        victim.endpoint.released();
        victim.endpoint.complete();
        return said.code();
    };
    EXPECT_EQ(say(FrameKind::kWritten, 350'000, 100), Status::Code::kOk);
    EXPECT_EQ(say(FrameKind::kWritten, 350'000, 0), Status::Code::kMismatch);
    EXPECT_EQ(say(FrameKind::kWritten, 350'001, 100), Status::Code::kMismatch);
    EXPECT_EQ(say(FrameKind::kRecalled, 350'000, 0), Status::Code::kMismatch);
    EXPECT_EQ(say(FrameKind::kRecall, 350'000, 0), Status::Code::kOk);
}

}  // namespace
}  // namespace isthmus
