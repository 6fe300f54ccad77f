#pragma once

#include <array>
#include <deque>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "comm/transport/credits.hpp"
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
    FrameEndpoint(const ProcessId& peer, Carrier& carrier, TransportListener& listener,
                  const FlowLimits& limits = {});

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
    bool isExpecting() const { return receives_.size() > 0 || waiting_.size() > 0 || hasOutput(); }

    /// Writes frames, most urgent first, until there are none or the stream is full.
    Moved write(OutStream& stream);
    /// Reads about 1 MB at most. A failure is for the carrier to answer with fail().
    Moved read(InStream& stream);
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
    Status takeGrant(const FrameHeader& header);
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

    const ProcessId peer_;
    Carrier& carrier_;
    TransportListener& listener_;
    const FlowLimits limits_;
    State state_ = State::kIdle;
    Status failure_;
    bool lossIsNews_ = false;
    bool saidGoodbye_ = false;

    // Sending.
    FrameWriter writer_;
    std::vector<std::byte> urgent_;  // whole frames without operations
    std::array<Ready, kPriorities> ready_;
    int readyOperations_ = 0;
    OperationTable waiting_;                                                // for a grant
    std::unordered_map<MessageTag, std::uint64_t, MessageTagHash> grants_;  // without a send yet
    SendCredit sendCredit_;

    // Receiving.
    FrameReader reader_;
    OperationTable receives_;
    std::unordered_map<MessageTag, Unexpected, MessageTagHash> unexpected_;
    ReceiveCredit receiveCredit_;
    Operation* inbound_ = nullptr;  // whose memory the frame under way is read into
    std::vector<std::byte> controlMessage_;

    std::unordered_set<std::uint64_t> cancelled_;
    std::deque<std::uint64_t> cancelledInOrder_;
    std::vector<std::pair<Operation*, Status>> completed_;
    std::vector<std::pair<Operation*, Status>> running_;
    WireCounters counters_;
};

}  // namespace isthmus
