#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "comm/bootstrap/authenticate.hpp"
#include "comm/bootstrap/job_key.hpp"
#include "comm/transport/transport.hpp"

namespace isthmus {

/// What a connection is for; stands in the first bytes, so that a wrong door is noticed.
enum class Purpose : std::uint16_t { kTcpFrames = 1, kSharedMemory = 2, kRemoteMemory = 3 };

/// How two processes make sure of each other before the first frame: the connecting side says HELLO
/// (who it is, whom it wants, a nonce), the accepting side ANSWERs with a nonce of its own and a
/// proof of the job key over both, the connecting side returns its PROOF. All lengths are fixed;
/// nothing is believed, and nothing allocated, before the proofs. Does no I/O.
inline constexpr std::size_t kHelloBytes = 64;
inline constexpr std::size_t kAnswerBytes = 80;
inline constexpr std::size_t kProofBytes = 32;
/// The first bytes of HELLO and ANSWER that already tell foreign programs apart.
inline constexpr std::size_t kGreetingBytes = 8;

using Hello = std::array<std::byte, kHelloBytes>;
using Answer = std::array<std::byte, kAnswerBytes>;

/// "isthmus" and a letter for the side.
bool isHelloGreeting(std::span<const std::byte, kGreetingBytes> greeting);
bool isAnswerGreeting(std::span<const std::byte, kGreetingBytes> greeting);

/// The side that connects.
class NegotiateConnector {
public:
    NegotiateConnector(const JobKey& key, Purpose purpose, const ProcessId& self,
                       const ProcessId& peer);

    const Hello& hello() const { return hello_; }
    /// kConfiguration: not isthmus, another version, another job key. kPeerLost: another process
    /// has the address now.
    Status check(const Answer& answer);
    /// After a good check.
    Mac proof() const;

private:
    const JobKey key_;
    const ProcessId peer_;
    Hello hello_{};
    Answer answer_{};
};

/// The side that accepts.
class NegotiateAcceptor {
public:
    NegotiateAcceptor(const JobKey& key, Purpose purpose, const ProcessId& self)
        : key_(key), purpose_(purpose), self_(self) {}

    /// kMismatch when `hello` is none.
    Result<Answer> answer(const Hello& hello);
    /// kConfiguration says why the connecting side must not come in.
    Status check(const Mac& proof) const;
    /// After a good check: who it is.
    const ProcessId& peer() const { return peer_; }

private:
    const JobKey key_;
    const Purpose purpose_;
    const ProcessId self_;
    ProcessId peer_;
    Hello hello_{};
    Answer answer_{};
};

}  // namespace isthmus
