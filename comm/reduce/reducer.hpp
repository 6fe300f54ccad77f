#pragma once

#include <cstddef>
#include <span>

#include <isthmus/status.hpp>
#include <isthmus/types.hpp>

namespace isthmus {

/// Whether `op` is defined on `type`: avg on floating and complex types only, band/bor/bxor on
/// integers and bool only, sum and avg alone on complex types, nothing on 8-bit floating ones.
bool isReducible(DataType type, ReduceOp op);

/// target[i] = source1[i] op source2[i] op ..., left to right, then times `scale` (floating and
/// complex types only; ignored elsewhere).
///
/// One pass over all sources. f16 and bf16 accumulate in f32 and round once (to nearest even),
/// after the scale. Integer sum and product wrap. min and max give NaN when any source has one, and
/// order -0 below +0: their bits do not depend on the order of the sources.
/// bool: sum, max, bor are "or"; prod, min, band are "and"; bxor is "xor"; any non-zero byte is
/// true, results are 0 or 1. kAvg adds like kSum: the caller gives the scale. `target` may be one
/// of `sources` exactly, or overlap none. One source: a (scaled) copy. Pointers need no alignment.
/// `elements` 0 is legal. Requires isReducible(type, op) and at least one source. Thread: any; no
/// allocation for up to 64 sources.
void reduce(DataType type, ReduceOp op, void* target, std::span<const void* const> sources,
            std::size_t elements, double scale = 1.0);

/// The same, and the result is written to every one of `targets` in the same pass. Each target may
/// be one of `sources` exactly; targets do not overlap each other. `streaming` writes past the
/// caches (non-temporal stores, made visible before this returns): a gain only when the whole job
/// is larger than the last-level cache. At least one target.
void reduceToMany(DataType type, ReduceOp op, std::span<void* const> targets,
                  std::span<const void* const> sources, std::size_t elements, double scale,
                  bool streaming);

/// Copies between places that do not overlap (or are the same). `streaming` as above.
void copyBytes(void* target, const void* source, std::size_t bytes, bool streaming);

}  // namespace isthmus
