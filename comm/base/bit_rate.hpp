#pragma once

#include <optional>
#include <string_view>

namespace isthmus {

/// Bits per second of "10gbit", "2.5gbit", "500mbit", "800kbit", "9600bit" (decimal, as tc(8) reads
/// them). Nothing where it is not of that form or not above 0.
std::optional<double> bitsPerSecondOf(std::string_view text);

}  // namespace isthmus
