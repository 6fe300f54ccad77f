#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace isthmus {

/// How a value came to be known.
enum class Provenance : std::uint8_t {
    kUnknown,   ///< nobody says
    kAssumed,   ///< our guess
    kReported,  ///< the operating system or a device says so
    kMeasured,  ///< we timed or counted it
    kGiven,     ///< the user's file or option says so
};

constexpr std::string_view nameOf(Provenance from) {
    constexpr std::string_view kNames[] = {"unknown", "assumed", "reported", "measured", "given"};
    return kNames[static_cast<int>(from)];
}

constexpr std::optional<Provenance> provenanceNamed(std::string_view name) {
    for (int i = 0; i <= static_cast<int>(Provenance::kGiven); ++i) {
        if (nameOf(static_cast<Provenance>(i)) == name) return static_cast<Provenance>(i);
    }
    return std::nullopt;
}

/// A value with its provenance; `where` names the file, call or option it was read from.
template <typename T>
struct Fact {
    T value{};
    Provenance from = Provenance::kUnknown;
    std::string where;

    bool isKnown() const { return from != Provenance::kUnknown; }
    bool operator==(const Fact&) const = default;

    static Fact reported(T value, std::string where) {
        return {std::move(value), Provenance::kReported, std::move(where)};
    }
};

}  // namespace isthmus
