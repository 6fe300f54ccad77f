#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string_view>

#include "comm/bootstrap/job_key.hpp"

namespace isthmus {

using Mac = std::array<std::byte, 32>;
using Nonce = std::array<std::byte, 16>;

/// Makes OpenSSL ready, which opens files when first used: what follows may rely on it. Errors:
/// kResource when that fails, as it does when descriptors have run out. Any thread.
Status prepareAuthentication();

/// HMAC-SHA256 (RFC 2104) over the parts, one after the other. Parts have no marks between them:
/// put a length before each part whose length may vary.
Mac hmacSha256(const JobKey& key, std::initializer_list<std::span<const std::byte>> parts);

/// Takes the same time wherever the two differ.
bool isEqualInConstantTime(std::span<const std::byte> one, std::span<const std::byte> other);

/// Fresh random bytes for a challenge.
Nonce makeNonce();

/// What a side of a mutual challenge sends to prove that it knows `key`. `label` names the protocol
/// and the side that speaks, so that no proof can be sent back to its maker; `transcript` is all
/// that both have said so far.
Mac proofOf(const JobKey& key, std::string_view label, std::span<const std::byte> transcript);

}  // namespace isthmus
