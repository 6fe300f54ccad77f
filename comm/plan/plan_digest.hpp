#pragma once

#include <cstdint>

#include "comm/plan/plan.hpp"

namespace isthmus {

/// 64 bits over everything that makes the Plan: the same on every machine of a job that runs one
/// build; equal plans have equal digests.
std::uint64_t digestOf(const Plan& plan);

/// The same without what differs between ranks or is this node's own choice (mapping, steps,
/// scratch): what all ranks of one call must agree on.
std::uint64_t digestOfAgreement(const Plan& plan);

}  // namespace isthmus
