#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "comm/communicator/calling_card.hpp"

namespace isthmus {

/// Processors that these ranks may use between them, if they are of one node: the union of their
/// masks, or fewer where a container allows less; one each where the system does not say.
int processorsOf(const std::vector<CallingCard>& cards);

/// What ranks of `processors` may hope to find in their caches, of `reported` bytes.
std::size_t cacheBytesFor(int processors, std::size_t reported);

/// Operand bytes up to which a call inside one node meets once (SelectorOptions::inlineBytes):
/// ISTHMUS_INLINE where it is set. Else by what a meeting costs: where ranks wait for each other's
/// processors, so much more that copies of larger operands are worth it. A pure function of the
/// cards: all ranks find the same.
std::int64_t inlineBytesFor(const Options& options, const std::vector<CallingCard>& cards);

}  // namespace isthmus
