#pragma once

#include <vector>

#include "scheduler/model/volumes.hpp"

namespace isthmus::scheduler {

/// Every kind of group, in the order of their numbers.
inline constexpr std::array kSpans = {Span::kTensor,     Span::kContext, Span::kExpert,
                                      Span::kData,       Span::kShard,   Span::kReplicate,
                                      Span::kExpertData, Span::kTied};

/// The groups of a span among the ranks of one stage, numbered as Shape has them; members by rank.
/// Of tied parameters: the pairs of that stage's ranks with those of the other stage that has them,
/// told by the first of the two; a stage without them has none.
std::vector<std::vector<int>> groupsOf(const AxisVolumes& volumes, Span span, int stage);

}  // namespace isthmus::scheduler
