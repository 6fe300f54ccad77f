#include "tools/cli/line_rate.hpp"

#include <cctype>
#include <cstdlib>
#include <string>

namespace isthmus::cli {

Result<double> parseLineRate(std::string_view text) {
    std::string lower;
    for (const char letter : text) {
        lower += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    }
    if (lower == "none") return 0.0;
    char* rest = nullptr;
    const double number = std::strtod(lower.c_str(), &rest);
    std::string unit = rest;
    if (unit.size() > 2 && unit.ends_with("/s")) unit.resize(unit.size() - 2);
    double scale = 0;
    if (unit == "gbit") scale = 1e9;
    if (unit == "mbit") scale = 1e6;
    if (unit == "kbit") scale = 1e3;
    if (unit == "bit") scale = 1;
    const double bits = number * scale;
    if (rest == lower.c_str() || !(bits > 0) || bits > 1e15) {
        return Status::invalidArgument("rate \"" + std::string(text) +
                                       "\" is none of 1gbit, 500mbit, 2.5gbit, none");
    }
    return bits;
}

}  // namespace isthmus::cli
