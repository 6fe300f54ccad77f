#pragma once

#include <cstdint>

#include "comm/plan/plan.hpp"

namespace isthmus {

/// In lowest terms.
Fraction reduced(std::int64_t numerator, std::int64_t denominator);

bool isLess(const Fraction& a, const Fraction& b);

/// from + (to - from) * part / parts
Fraction between(const Fraction& from, const Fraction& to, int part, int parts);

}  // namespace isthmus
