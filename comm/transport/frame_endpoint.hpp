#pragma once

#include <array>
#include <deque>
#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "comm/transport/credits.hpp"
#include "comm/transport/direct.hpp"
#include "comm/transport/frame_reader.hpp"
#include "comm/transport/frame_writer.hpp"
#include "comm/transport/operation_table.hpp"

namespace isthmus {

/// What a FrameEndpoint asks of the transport that carries its bytes.
class Carrier {
public:
    virtual ~Carrier() = default;

    virtual std::string_view transportName() const = 0;
    virtual std::string describe() const = 0;
    virtual void connect() = 0;  ///< once, at the first use
    virtual Endpoint::MappedArena mapped() const = 0;
    virtual void ringDoorbell() = 0;
    /// Something is to be written or completed, which progress() would not find by itself.
    virtual void stirred() {}
};

/// Sizes that both ends must agree on; other values than these are for tests.
struct FlowLimits {
    /// Longer messages wait for the receiver's grant and are never copied. A grant costs a round
    /// trip of about 10 us, a copy of this length about 3 us on each side.
    std::uint32_t eagerBytes = 32 * 1024;
    std::uint64_t windowBytes = kEagerWindowBytes;
    std::uint32_t pieceBytes = kLongestPieceBytes;
};

/// Everything of an Endpoint that does not depend on how bytes travel: frames, matching, flow
/// control, priorities, cancelling. Does no I/O and reads no clock: its Carrier gives it two
/// streams and calls write, read and complete from Transport::progress. Engine thread.
class FrameEndpoint final : public Endpoint, private FrameSink {
public:
    /// `mover`: null where all bytes travel in the streams. Outlives the endpoint.
    FrameEndpoint(const ProcessId& peer, Carrier& carrier, TransportListener& listener,
                  const FlowLimits& limits = {}, DirectMover* mover = nullptr);

    const ProcessId& peer() const override { return peer_; }
    std::string_view transportName() const override { return carrier_.transportName(); }
    std::string describe() const override { return carrier_.describe(); }
    void postSend(Operation& operation) override;
    void postRecv(Operation& operation) override;
    void cancel(std::uint64_t communicator, const Status& why) override;
    bool withdraw(Operation& receive) override;
    void sendControl(std::span<const std::byte> message) override;
    bool isAnnounced(const MessageTag& tag) const override;
    State state() const override { return state_; }
    void connect() override;
    MappedArena mapped() const override { return carrier_.mapped(); }
    void ringDoorbell() override { carrier_.ringDoorbell(); }
    WireCounters counters() const override { return counters_; }

    /// The peer can be written to from now on.
    void opened();

    bool hasOutput() const {
        return readyOperations_ > 0 || !urgent_.empty() || !writer_.isEmpty();
    }
    /// True when complete() has something to do.
    bool hasNews() const { return !completed_.empty() || lossIsNews_; }
    /// Operations posted or messages on their way: somebody waits for this endpoint.
    bool isExpecting() const {
        return receives_.size() > 0 || waiting_.size() > 0 || hasOutput() || !direct_.isIdle();
    }

    /// Writes frames, most urgent first, until there are none or the stream is full.
    Moved write(OutStream& stream);
    /// Reads about 1 MB at most. A failure is for the carrier to answer with fail().
    Moved read(InStream& stream);
    /// The next bytes, from a carrier that is given them. A failure is for it to answer, too.
    Status take(std::span<const std::byte> bytes);
    /// Runs the completions that are due. Returns how many.
    int complete();

    /// The peer is gone. The first cause wins; every operation is completed with it.
    void fail(const Status& why);
    /// The same, but it said so before.
    void leave(const Status& why);
    /// This process closes its transport: as fail(), but nobody needs to be told of the loss.
    void shut(const Status& why);
    /// Queues the last frame: this process leaves in order.
    void sayGoodbye();
    bool isGone() const { return state_ == State::kLost || state_ == State::kLeft; }

    /// For carriers with a mover (frame_endpoint_direct.cc).
    /// Hands what is granted to the mover, most urgent first, until it takes no more. Returns
    /// bytes.
    std::uint64_t moveDirectly();
    bool hasDirectOutput() const { return direct_.ready.hasAny(); }
    /// Sends are under way past the streams.
    bool isMovingDirectly() const { return !direct_.sends.empty(); }
    /// `bytes` that the mover took of `send` are in place, or moving them has failed.
    void written(Operation& send, std::uint64_t bytes, const Status& outcome);
    /// Operations are over whose memory is still in others' hands.
    bool isHolding() const { return direct_.isHolding(); }
    /// After the end of the peer: nobody moves anything any more. Completes what is held.
    void released();

private:
    struct Unexpected {
        FrameHeader header;
        std::vector<std::byte> payload;
        bool isWhole = false;
    };
    static constexpr int kPriorities = 8;
    struct Ready {
        OperationQueue small;
        OperationQueue large;
    };

    // Sending (frame_endpoint_send.cc).
    void queueFrame(FrameHeader header, std::span<const std::byte> payload = {});
    void queueAnswer(FrameKind kind, const Operation& operation);
    void fill();
    bool fillOne(Ready& ready);
    void makeReady(Operation& operation, bool isSmall);
    template <typename Claim>
    void finishReady(const Claim& claim, const Status& why);
    void pieceWritten(Operation& operation);

    // Receiving (frame_endpoint_receive.cc).
    Status begin(const FrameHeader& header, std::vector<iovec>& target) override;
    Status end(const FrameHeader& header) override;
    Status beginEager(const FrameHeader& header, std::vector<iovec>& target);
    Status beginData(const FrameHeader& header, std::vector<iovec>& target);
    Status takeRequest(const FrameHeader& header);
    Status takeGrant(const FrameHeader& header, const Bytes& invitation);
    void takeRefusal(const FrameHeader& header, OperationTable& from);
    Status endEager(const FrameHeader& header);
    void claim(Operation& operation, Unexpected& message);
    bool isCancelled(std::uint64_t communicator) const { return cancelled_.contains(communicator); }
    void announce(const FrameHeader& header);
    void grant(Operation& operation);
    void tellCredit();

    void finish(Operation& operation, const Status& status);
    void mismatch(Operation& operation, std::uint64_t theirs);
    void gone(const Status& why, State state);

    // Moving past the streams (frame_endpoint_direct.cc).
    struct Grant {
        std::uint64_t bytes = 0;
        Bytes invitation;  ///< empty: in the stream
    };
    void startGranted(Operation& operation, const Bytes& invitation);
    bool invite(Operation& operation);
    Status takeWritten(const FrameHeader& header);
    void takeRecall(const FrameHeader& header);
    Status takeRecalled(const FrameHeader& header);
    void recall(Operation& operation, const Status& why);
    void stopSend(DirectSend& send, const Status& outcome);
    void endSend(const MessageTag& tag);
    void stopDirect(const std::function<bool(const Operation&)>& claim, const Status& why);

    const ProcessId peer_;
    Carrier& carrier_;
    TransportListener& listener_;
    DirectMover* const mover_;
    const FlowLimits limits_;
    State state_ = State::kIdle;
    Status failure_;
    bool lossIsNews_ = false;
    bool lossWaits_ = false;  // until released()
    bool saidGoodbye_ = false;

    // Sending.
    FrameWriter writer_;
    std::vector<std::byte> urgent_;  // whole frames without operations
    std::array<Ready, kPriorities> ready_;
    int readyOperations_ = 0;
    OperationTable waiting_;                                        // for a grant
    std::unordered_map<MessageTag, Grant, MessageTagHash> grants_;  // without a send yet
    SendCredit sendCredit_;

    // Receiving.
    FrameReader reader_;
    OperationTable receives_;
    std::unordered_map<MessageTag, Unexpected, MessageTagHash> unexpected_;
    ReceiveCredit receiveCredit_;
    Operation* inbound_ = nullptr;         // whose memory the frame under way is read into
    std::vector<std::byte> smallMessage_;  // of a control frame or an invitation

    DirectTransfers direct_;

    std::unordered_set<std::uint64_t> cancelled_;
    std::deque<std::uint64_t> cancelledInOrder_;
    std::vector<std::pair<Operation*, Status>> completed_;
    std::vector<std::pair<Operation*, Status>> running_;
    WireCounters counters_;
};

}  // namespace isthmus
