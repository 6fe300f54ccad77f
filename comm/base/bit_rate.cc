#include "comm/base/bit_rate.hpp"

#include <array>
#include <charconv>
#include <utility>

namespace isthmus {

std::optional<double> bitsPerSecondOf(std::string_view text) {
    constexpr std::array<std::pair<std::string_view, double>, 4> kUnits{
        {{"gbit", 1e9}, {"mbit", 1e6}, {"kbit", 1e3}, {"bit", 1.0}}};
    for (const auto& [unit, factor] : kUnits) {
        if (!text.ends_with(unit)) continue;
        const std::string_view digits = text.substr(0, text.size() - unit.size());
        double value = 0;
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(),
                                                  value, std::chars_format::fixed);
        if (error != std::errc() || end != digits.data() + digits.size() || !(value > 0)) break;
        return value * factor;
    }
    return std::nullopt;
}

}  // namespace isthmus
