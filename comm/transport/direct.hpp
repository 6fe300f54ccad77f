#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>

#include "comm/transport/operation_table.hpp"

namespace isthmus {

/// What carries the bytes of large messages past the streams, straight into the memory of their
/// receives. One per endpoint, all on the engine's thread; no call blocks or calls back.
class DirectMover {
public:
    virtual ~DirectMover() = default;

    /// Opens the memory of a receive to the peer. Returns what the peer needs to write there, at
    /// most kLongestInvitationBytes; empty: the bytes must come in the stream.
    virtual Bytes invite(const Operation& receive) = 0;
    /// The peer has ended with an invited receive, or is gone.
    virtual void close(const Operation& receive) = 0;

    /// Whether the peer's invitation serves for this send. True: put, then release.
    virtual bool accept(const Operation& send, std::span<const std::byte> invitation) = 0;
    /// Starts to move bytes from send.moved on. Returns how many: 0 when there is no room now. Each
    /// time, FrameEndpoint::written follows later, from the carrier's progress.
    virtual std::uint64_t put(Operation& send) = 0;
    /// Everything that put took of this send was told to `written`.
    virtual void release(const Operation& send) = 0;
};

/// Operations by priority, first come first served within one.
class PriorityQueues {
public:
    static constexpr int kPriorities = 8;

    bool hasAny() const { return size_ > 0; }
    Operation* first() const {
        for (const OperationQueue& queue : queues_) {
            if (!queue.isEmpty()) return queue.first();
        }
        return nullptr;
    }
    void push(Operation& operation) {
        queueOf(operation).push(operation);
        ++size_;
    }
    void remove(const Operation& operation) {
        queueOf(operation).takeIf([&](const Operation& each) { return &each == &operation; },
                                  [this](Operation&) { --size_; });
    }

private:
    OperationQueue& queueOf(const Operation& operation) {
        return queues_[std::min<int>(operation.priority, kPriorities - 1)];
    }

    std::array<OperationQueue, kPriorities> queues_;
    std::size_t size_ = 0;
};

/// A send that its mover has accepted.
struct DirectSend {
    Operation* operation = nullptr;
    std::uint64_t inFlight = 0;     ///< bytes that the mover took and has not told of
    std::uint64_t visible = 0;      ///< bytes that are in place
    bool isRecalled = false;        ///< the peer waits to hear of its end
    std::optional<Status> outcome;  ///< decided already: it ends when nothing is in flight
};

/// A receive that is over here while the peer may still write to its memory.
struct RecalledReceive {
    Operation* operation = nullptr;
    Status why;
};

/// What one endpoint moves past its streams.
struct DirectTransfers {
    PriorityQueues ready;  ///< accepted sends that are not all taken by the mover
    std::unordered_map<MessageTag, DirectSend, MessageTagHash> sends;
    std::unordered_map<MessageTag, RecalledReceive, MessageTagHash> recalled;

    bool isIdle() const { return sends.empty() && recalled.empty(); }
    bool isHolding() const {
        return !recalled.empty() || std::any_of(sends.begin(), sends.end(), [](const auto& each) {
            return each.second.outcome.has_value();
        });
    }
};

}  // namespace isthmus
