#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <isthmus/status.hpp>
#include <isthmus/store.hpp>

#include "comm/bootstrap/authenticate.hpp"

namespace isthmus {

/// The bytes that a store's client and server exchange; no socket here.
///
///   client -> server  hello   "ISTHMUS?" version nonce, ended as a line so that services that read
///                             lines answer and can be told apart at once
///   server -> client  hello   "ISTHMUS!" version instance nonce proof(server, both hellos)
///   client -> server  proof(client, both hellos)
///   both ways         frames  length, MAC (side, number of the frame, body), body

inline constexpr std::uint16_t kStoreVersion = 1;
inline constexpr std::size_t kClientHelloBytes = 32;
inline constexpr std::size_t kServerHelloBytes = 80;
inline constexpr std::size_t kMagicBytes = 8;

/// Limits that hold before anything is allocated; those of torch's store, which users know.
inline constexpr std::size_t kMostKeyBytes = 8 * 1024;
inline constexpr std::size_t kMostValueBytes = 8 * 1024 * 1024;
inline constexpr std::size_t kMostFrameBytes = kMostKeyBytes + kMostValueBytes + 64;

/// Tells one run of a server from the next at the same address.
using StoreInstance = Nonce;

Bytes clientHello(const Nonce& nonce);
Bytes serverHello(const JobKey& key, const StoreInstance& instance, const Nonce& nonce,
                  std::span<const std::byte> clientHello);
Mac clientProof(const JobKey& key, std::span<const std::byte> clientHello,
                std::span<const std::byte> serverHello);

/// kMismatch when the bytes are no hello of a client, or of another version.
Status checkClientHello(std::span<const std::byte> hello);

/// kConfiguration when whoever answered is no store, has another version or another job key.
Result<StoreInstance> checkServerHello(const JobKey& key, std::span<const std::byte> clientHello,
                                       std::span<const std::byte> serverHello);

/// True as long as `start` may become a hello.
bool mayBeClientHello(std::span<const std::byte> start);
bool mayBeServerHello(std::span<const std::byte> start);

enum class Side : std::uint8_t { kClient = 1, kServer = 2 };

/// One direction of frames after the handshake. The sender seals, the receiver opens.
class FrameStream {
public:
    /// `session` is clientProof's value: only both ends know it, and it is new each time.
    FrameStream(const JobKey& key, const Mac& session, Side sender);

    Bytes seal(std::span<const std::byte> body);

    /// The first whole frame of `data`, if there is one: its body, and how many bytes it took.
    /// kMismatch when the length is too large or the frame was not made by the other end.
    struct Opened {
        Bytes body;
        std::size_t taken = 0;
    };
    Result<std::optional<Opened>> open(std::span<const std::byte> data);

private:
    Mac macOf(std::span<const std::byte> body) const;

    JobKey key_;
    Side sender_;
    std::uint64_t frames_ = 0;
};

enum class StoreVerb : std::uint8_t { kSet = 1, kGet = 2, kHas = 3, kErase = 4 };

struct StoreRequest {
    StoreVerb verb = StoreVerb::kHas;
    std::uint32_t limitMilliseconds = 0;  ///< kGet: how long the server may let us wait
    std::string key;
    Bytes value;
};

/// A value when `code` is kOk, else text that says why. kHas answers with one byte, 0 or 1.
struct StoreAnswer {
    Status::Code code = Status::Code::kOk;
    Bytes body;
};

Bytes encode(const StoreRequest& request);
Bytes encode(const StoreAnswer& answer);
Result<StoreRequest> decodeStoreRequest(std::span<const std::byte> data);
Result<StoreAnswer> decodeStoreAnswer(std::span<const std::byte> data);

/// kInvalidArgument for a key or value that no store takes.
Status checkStoreKey(std::string_view key);
Status checkStoreValue(const Bytes& value);

}  // namespace isthmus
