#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <isthmus/status.hpp>
#include <isthmus/store.hpp>
#include <isthmus/types.hpp>

#include "comm/base/clock.hpp"

namespace isthmus {

/// A process, for as long as it lives: random, so nothing stale can match.
struct ProcessId {
    std::uint64_t high = 0;
    std::uint64_t low = 0;

    auto operator<=>(const ProcessId&) const = default;
};

/// Which messages may meet: equal tags of one pair of processes, one send and one receive each.
struct MessageTag {
    std::uint64_t communicator = 0;
    std::uint64_t sequence =
        0;  ///< of the call; for point to point the n-th of (source, destination, userTag)
    std::uint32_t segment = 0;  ///< for point to point: the user's tag
    std::uint32_t index = 0;    ///< n within (segment, channel) of this direction
    std::uint16_t channel = 0;
    std::uint16_t from = 0;  ///< rank in the communicator (one process may hold several in tests)
    std::uint16_t to = 0;
    bool pointToPoint = false;

    auto operator<=>(const MessageTag&) const = default;
};

/// The channel of messages that prove a connection. They are of no communicator: a listener leaves
/// their announcements alone.
inline constexpr std::uint16_t kWireUpChannel = 0xfffe;

/// What a rank believes the call is. Travels in every first frame of a message, is never part of
/// matching.
struct CallFingerprint {
    std::uint8_t collective = 0;
    std::uint8_t type = 0;
    std::uint8_t op = 0;
    std::uint8_t flags = 0;
    std::int32_t root = 0;
    std::uint64_t elements = 0;
    std::uint64_t planDigest = 0;  ///< algorithm, chunking, segments, window and v-counts

    bool operator==(const CallFingerprint&) const = default;
};

struct MemoryPiece {
    std::byte* address = nullptr;
    std::size_t bytes = 0;
};

/// One posted send or receive. Owned by the poster, who keeps it and its memory alive and in place
/// until `done` has run. `pieces` is a scatter/gather list; its total is the message's length; 0
/// bytes is legal.
struct Operation {
    MessageTag tag;
    CallFingerprint fingerprint;
    std::vector<MemoryPiece> pieces;
    std::uint8_t priority = 0;
    void (*done)(Operation& self,
                 const Status& status) = nullptr;  ///< once, from progress(), never inside post
    void* owner = nullptr;                         ///< for `done`

    Operation* next = nullptr;  ///< the endpoint's while posted
    std::uint64_t moved = 0;    ///< bytes so far; for messages about a stuck call
    bool isGranted = false;     ///< a receive whose sender was told that it may write
    bool isOpen = false;        ///< a receive whose memory the sender can write to itself
};

class Endpoint;

/// Told by progress() what posts do not tell. All on the engine's thread.
class TransportListener {
public:
    virtual ~TransportListener() = default;

    /// A message, or a receiver's readiness for one, of `tag` was announced by the peer: before it
    /// is matched.
    virtual void announced(Endpoint& from, const MessageTag& tag,
                           const CallFingerprint& fingerprint, std::uint64_t bytes) = 0;
    /// A control message of the peer's engine.
    virtual void control(Endpoint& from, std::span<const std::byte> message) = 0;
    /// The peer is gone; everything posted to it has been completed with `why` already. Once per
    /// endpoint.
    virtual void lost(Endpoint& from, const Status& why) = 0;
};

/// Bytes since the process started, per endpoint.
struct WireCounters {
    std::uint64_t sentPayload = 0;
    std::uint64_t receivedPayload = 0;
    std::uint64_t sentTotal = 0;  ///< with headers and control messages
    std::uint64_t receivedTotal = 0;
};

/// What one card carried since the process started: bytes of the streams between nodes, as they go
/// into and come out of sockets; the packets around them are not counted.
struct CardCounters {
    std::string name;
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
};

/// One peer process as one transport reaches it. Connects when first used. Owned by its Transport.
/// Nothing here blocks or calls back; everything is on the engine's thread.
class Endpoint {
public:
    virtual ~Endpoint() = default;

    virtual const ProcessId& peer() const = 0;
    virtual std::string_view transportName() const = 0;  ///< "tcp", "shm", "inproc", "sim"
    virtual std::string describe() const = 0;  ///< for messages: "tcp 10.77.0.2:4123 pid 812"

    /// Accepts the operation; it completes once, later, from progress(). Completion of a send means
    /// the memory is free, not that the peer has the bytes. A receive completes when its bytes are
    /// in place. A peer's message of another length than the receive's completes both ends with
    /// kMismatch.
    virtual void postSend(Operation& operation) = 0;
    virtual void postRecv(Operation& operation) = 0;

    /// Completes every operation of `communicator` with `why` at the next progress(), and forgets
    /// messages of it that wait here. The memory is free after that even if a frame was half sent
    /// or half received. Memory that a card of this process or of the peer reads or writes takes
    /// longer: until both say that it does not, or the connection is given up; 2 s at most.
    virtual void cancel(std::uint64_t communicator, const Status& why) = 0;

    /// Takes a posted receive back: true, and it never completes. False when its message has begun
    /// to arrive, or its sender was told to write it.
    virtual bool withdraw(Operation& receive) = 0;

    /// Queues a small message (<= 4096 bytes) for the peer's TransportListener::control. Bytes are
    /// copied.
    virtual void sendControl(std::span<const std::byte> message) = 0;

    /// Point to point from any source: true, and the tag's exact form, when a message of
    /// (communicator, to, user tag) from rank `from` with sequence `sequence` has been announced
    /// and is not matched yet.
    virtual bool isAnnounced(const MessageTag& tag) const = 0;

    /// kLeft: as kLost, but the peer said goodbye first (it closed its transport in order).
    enum class State : std::uint8_t { kIdle, kConnecting, kOpen, kLost, kLeft };
    virtual State state() const = 0;
    /// Starts connecting now instead of at the first post. Outcome: state(), later.
    virtual void connect() = 0;

    /// The peer's Arena as mapped in this process: proof that it is on this node. Null base while
    /// not kOpen, and for transports that do not share memory.
    struct MappedArena {
        std::byte* base = nullptr;
        std::size_t bytes = 0;
    };
    virtual MappedArena mapped() const = 0;

    /// After this process wrote something into shared memory that the peer may be waiting for:
    /// wakes the peer if it sleeps. One load when it does not. No effect for transports that do not
    /// share memory.
    virtual void ringDoorbell() = 0;

    virtual WireCounters counters() const = 0;
};

/// A way to reach processes.
class Transport {
public:
    virtual ~Transport() = default;

    virtual std::string_view name() const = 0;

    /// What a peer needs to reach this process; goes into the exchange when a Communicator is made.
    virtual Bytes address() const = 0;

    /// The endpoint of `peer`, made on first use, one per peer. `address` is what its
    /// Transport::address() said.
    virtual Result<Endpoint*> endpoint(const ProcessId& peer, const Bytes& address) = 0;

    /// Moves bytes and runs completions. Never blocks. Returns how many things happened.
    virtual int progress(Time now) = 0;

    /// One entry for each card this process uses, in the order of use; empty where the transport
    /// does not know what the cards carry.
    virtual std::vector<CardCounters> cards() const = 0;

    /// Called before the engine sleeps in SleepSet::wait (the transport keeps its descriptors
    /// registered there): marks this process as asleep for peers that share memory with it, then
    /// looks once more. False: there is work right now, do not sleep.
    virtual bool prepareSleep() = 0;
    virtual void wakeUp() = 0;  ///< called after the sleep

    /// When progress() must run again even if nothing arrives (virtual time, retries). Time::max():
    /// never.
    virtual Time nextEvent() const = 0;

    /// Best effort: pushes out queued control messages, then closes everything. Bounded by
    /// `deadline`.
    virtual void close(Time deadline) = 0;
};

}  // namespace isthmus
