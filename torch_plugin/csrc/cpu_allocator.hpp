#pragma once

#include <cstdint>

namespace isthmus::glue {

/// From now on every new CPU tensor of at least `leastBytes` lies in memory that the ranks of this
/// node map, so that collectives on it copy nothing more than they must. Smaller ones, and all when
/// that memory has run out or in forked children, come from the allocator that was there before.
/// Again: changes `leastBytes`. Any thread.
void shareCpuTensors(std::int64_t leastBytes);

}  // namespace isthmus::glue
