#pragma once

#include <string_view>

#include <isthmus/status.hpp>

namespace isthmus::cli {

/// "1gbit", "500mbit", "2.5Gbit/s" to bits per second; "none" is 0 (no limit). The grammar of
/// `tc`, decimal. kInvalidArgument says what is expected.
Result<double> parseLineRate(std::string_view text);

}  // namespace isthmus::cli
