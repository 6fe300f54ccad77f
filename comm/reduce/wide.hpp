#pragma once

#include <cstddef>

#include <isthmus/types.hpp>

namespace isthmus {

/// f16 and bf16 to f32, exactly, then times `scale`; and back, to nearest even as reduce() rounds.
/// Nothing overlaps. Thread: any.
void widen(DataType type, const void* from, float* to, std::size_t elements, double scale = 1.0);
void narrow(DataType type, const float* from, void* to, std::size_t elements);

}  // namespace isthmus
