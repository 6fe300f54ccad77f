#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <isthmus/status.hpp>
#include <isthmus/store.hpp>

#include "comm/base/clock.hpp"

namespace isthmus {

/// Names for what a device keeps; never 0, never used again for another thing.
enum class RmaPeer : std::uint64_t {};
enum class RmaRegion : std::uint64_t {};  ///< memory of this process that is registered
enum class RmaKey : std::uint64_t {};     ///< a peer's region, as imported here

struct RmaLimits {
    /// Longest message, 256 at least.
    std::size_t messageBytes = 0;
    /// Longest put and get; 0: there are none, messages are as good.
    std::size_t transferBytes = 0;
    /// Registering is so fast, whatever the length, that a call may wait for it (about 10 us:
    /// nothing is pinned, or the library below caches and watches for unmapped memory itself).
    bool isRegistrationCheap = true;
};

/// One put or get. All memory named here stays valid, registered and imported until `completed`.
struct RmaTransfer {
    std::byte* local = nullptr;  ///< inside `localRegion`
    RmaRegion localRegion{};
    std::uint64_t remote = 0;  ///< address at the peer, inside the region of `key`
    RmaKey key{};
    std::size_t bytes = 0;      ///< 1 to transferBytes
    std::uint64_t context = 0;  ///< for `completed`
};

/// Whether a post was taken. kFull: nothing happened, no credit just now: post again after a
/// progress() that did something. kGone: the peer failed or is being disconnected.
enum class RmaPost : std::uint8_t { kTaken, kFull, kGone };

/// Told by RmaDevice::progress. May post, start transfers, and make and drop registrations and
/// keys; calls nothing else of the device.
class RmaListener {
public:
    virtual ~RmaListener() = default;

    /// A message of some peer. Who sent it stands in it, if anywhere. The bytes are readable inside
    /// this call only.
    virtual void arrived(std::span<const std::byte> message) = 0;
    /// A put or get has ended; exactly once for each that was taken. ok: a put is visible to every
    /// thread of the peer process that learns of it by any later message; a get's bytes are here.
    /// Failed: nothing is known of the bytes, and nobody moves any of them any more. kMismatch: the
    /// memory lies outside a registration.
    virtual void completed(std::uint64_t context, const Status& outcome) = 0;
    /// The connection to the peer broke: nothing more will come, posts give kGone. Transfers under
    /// way may still complete. At most once, and not after disconnect.
    virtual void failed(RmaPeer peer, const Status& why) = 0;
    /// disconnect has ended: every transfer with this peer has completed before, none touches
    /// memory of this process any more, and nothing that the peer sent is written here from now on.
    virtual void disconnected(RmaPeer peer) = 0;
};

/// A card, or what stands for one, that reads and writes the memory of other processes: what UCX,
/// libfabric and verbs have in common at their strictest.
///
/// Order: none is promised, neither between messages nor between transfers nor between the two. A
/// transfer is known to be done by `completed` alone; to look at its last byte, or to send a flag
/// behind it, is no way to know.
/// Reliable: every message that was taken arrives once and whole, or the peer fails.
/// Progress: nothing needs to move unless both processes call progress().
/// Thread: the engine's; registerMemory, key and deregister: any, also during progress().
/// Nothing blocks.
class RmaDevice {
public:
    virtual ~RmaDevice() = default;

    virtual std::string_view name() const = 0;  ///< of the transport: "ucx", "ofi"
    virtual std::string describe() const = 0;   ///< for people: version, devices
    virtual const RmaLimits& limits() const = 0;

    /// What a peer's device needs to connect to this one: not secret, at most 64 KiB. Whoever gives
    /// it to whom has made sure of both.
    virtual Bytes address() const = 0;
    /// Connects to the device of that address. The connection may be made later; posts are taken at
    /// once. kMismatch: an address that is none. kUnsupported: no way leads there from here.
    virtual Result<RmaPeer> connect(std::span<const std::byte> address) = 0;
    enum class Ending : std::uint8_t { kDelivered, kNow };
    /// Ends a connection: `disconnected` follows. kDelivered: everything taken arrives first, as
    /// long as the peer lives. kNow: transfers under way complete with kAborted; also for a peer
    /// that failed, and after an earlier kDelivered that takes too long. From here on posts to the
    /// peer give kGone.
    virtual void disconnect(RmaPeer peer, Ending ending) = 0;

    /// Opens [address, address + bytes), at least one byte, to the device: as the local end of
    /// transfers, and as the remote end for whoever has its key. Regions may overlap.
    /// kResource: not now; the memory can still be copied into messages.
    virtual Result<RmaRegion> registerMemory(std::byte* address, std::size_t bytes) = 0;
    /// What a peer needs to reach a region: opaque, 1 to kLongestRmaKey bytes.
    virtual Bytes key(RmaRegion region) const = 0;
    /// Ends a registration that no transfer of this process uses. New transfers of peers are
    /// refused where the device can tell; whoever must be sure that none is under way asks the peer
    /// or disconnects it.
    virtual void deregister(RmaRegion region) = 0;
    /// Makes a peer's key usable for transfers with that peer. kMismatch: no key. kUnsupported: no
    /// transfers go to that peer, only messages.
    virtual Result<RmaKey> importKey(RmaPeer peer, std::span<const std::byte> key) = 0;
    /// No transfer uses it any more. Also after the peer was disconnected.
    virtual void dropKey(RmaKey key) = 0;

    /// Sends the bytes of `pieces`, 1 to messageBytes in all, which are copied before this returns.
    virtual RmaPost post(RmaPeer peer, std::span<const iovec> pieces) = 0;
    virtual RmaPost put(RmaPeer peer, const RmaTransfer& transfer) = 0;
    virtual RmaPost get(RmaPeer peer, const RmaTransfer& transfer) = 0;

    /// Moves everything on and tells `listener`. Returns how many things happened.
    virtual int progress(RmaListener& listener) = 0;

    /// A descriptor that becomes readable when there is news after arm(); the device's own. -1: it
    /// has none and progress() must be asked again and again.
    virtual int eventDescriptor() const = 0;
    /// Before sleeping on the descriptor. False: there is news already. A progress() that does
    /// nothing leaves it armed.
    virtual bool arm() = 0;
    /// When progress() must run even if nothing arrives. Time::max(): never.
    virtual Time nextEvent() const = 0;
};

inline constexpr std::size_t kLongestRmaKey = 512;

}  // namespace isthmus
