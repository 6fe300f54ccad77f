#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include <isthmus/status.hpp>

#include "comm/base/unique_fd.hpp"
#include "comm/bootstrap/host_port.hpp"

namespace isthmus {

/// A point of CLOCK_MONOTONIC by which something must have ended.
using Deadline = std::chrono::steady_clock::time_point;

inline Deadline deadlineIn(std::chrono::milliseconds limit) {
    // Far enough to mean "never" and near enough not to overflow when more is added.
    constexpr std::chrono::milliseconds kMost = std::chrono::hours(24 * 365);
    return std::chrono::steady_clock::now() + (limit < kMost ? limit : kMost);
}

/// What is left, never negative, rounded up.
std::chrono::milliseconds timeLeft(Deadline deadline);

/// A listening socket on exactly this place; a port of 0 takes any free one of `range`. Not
/// inherited by programs that this process starts. kConfiguration names address, port and, where
/// /proc tells, the process that holds it; kInvalidArgument when the address is not of this machine
/// (or not yet: IPv6 addresses take a second to become usable).
Result<UniqueFd> listenAt(const HostPort& place, PortRange range = {});

/// The port, or the local name, that a listening socket got.
HostPort placeOf(const UniqueFd& listener, const HostPort& asked);

/// The addresses that a host's name or number means here, as numeric text, each once.
Result<std::vector<std::string>> numericAddresses(const std::string& host);

/// Connects to any address that the host's name has. One round over all of them; kPeerLost says why
/// nobody took the connection, kConfiguration that the name cannot be resolved.
Result<UniqueFd> connectTo(const HostPort& place, Deadline deadline);

/// Our own address on a connection, numeric, without port: what others can reach us at.
std::string localAddressOf(const UniqueFd& connection);

/// True when the other end of a local connection runs as our user (SO_PEERCRED, unix(7)); true for
/// connections of other families, which have other proofs.
bool isOurUser(int connection);

/// Sends all bytes. kPeerLost when the other end is gone, kTimeout at the deadline.
Status sendAll(const UniqueFd& connection, std::span<const std::byte> data, Deadline deadline);

/// Receives what is there, at least one byte, at most the room given. Same errors.
Result<std::size_t> receiveSome(const UniqueFd& connection, std::span<std::byte> room,
                                Deadline deadline);

}  // namespace isthmus
