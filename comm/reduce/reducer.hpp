#pragma once

#include <cstddef>
#include <span>

#include <isthmus/status.hpp>
#include <isthmus/types.hpp>

namespace isthmus {

/// Whether `op` is defined on `type`: avg on floating types only, band/bor/bxor on integers and
/// bool only.
bool isReducible(DataType type, ReduceOp op);

/// target[i] = source1[i] op source2[i] op ..., left to right, then times `scale` (floating types
/// only; 1 elsewhere).
///
/// One pass over all sources. f16 and bf16 accumulate in f32 and round once (to nearest even),
/// after the scale. Integer sum and product wrap. min and max give NaN when any source has one.
/// bool: sum, max, bor are "or"; prod, min, band are "and"; bxor is "xor"; any non-zero byte is
/// true, results are 0 or 1. kAvg adds like kSum: the caller gives the scale. `target` may be one
/// of `sources` exactly, or overlap none. One source: a (scaled) copy. Pointers need no alignment.
/// `elements` 0 is legal. Requires isReducible(type, op) and at least one source. Thread: any; no
/// allocation for up to 64 sources.
void reduce(DataType type, ReduceOp op, void* target, std::span<const void* const> sources,
            std::size_t elements, double scale = 1.0);

}  // namespace isthmus
