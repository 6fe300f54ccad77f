#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <isthmus/status.hpp>

namespace isthmus {

enum class Unit : std::uint8_t { kNone, kBytes, kMilliseconds, kCount, kText, kFlag, kFraction };

std::string_view nameOf(Unit unit);

/// One option. Declared once, in a table of the layer that uses it.
struct Knob {
    std::string_view name;   ///< ISTHMUS_...
    std::string_view value;  ///< default, as one would write it
    Unit unit = Unit::kNone;
    std::string_view meaning;
};

/// What the options are in this process: read once, at the top; layers below get values.
class Options {
public:
    using Tables = std::span<const std::span<const Knob>>;

    /// Every knob at its default.
    static Options defaults(Tables tables);

    /// Reads the environment. A value of a wrong form is kConfiguration and names the variable,
    /// what it says and what is expected. Unknown ISTHMUS_ names do not fail: see unknown().
    static Result<Options> fromEnvironment(Tables tables);

    /// As if `name` had been set so; the same checks.
    Status set(std::string_view name, std::string_view value, std::string_view setBy);

    const std::string& text(std::string_view name) const;
    std::int64_t integer(
        std::string_view name) const;  ///< counts and bytes ("64K" and "1M" are binary)
    std::chrono::milliseconds milliseconds(std::string_view name) const;
    bool flag(std::string_view name) const;
    double fraction(std::string_view name) const;

    struct Row {
        Knob knob;
        std::string value;
        std::string setBy;  ///< "default", "environment", ...
    };
    std::vector<Row> rows() const;

    /// ISTHMUS_ variables that no table knows, each with the nearest known name.
    struct Unknown {
        std::string name;
        std::string nearest;
    };
    const std::vector<Unknown>& unknown() const { return unknown_; }

private:
    const Row& row(std::string_view name) const;

    std::map<std::string, Row, std::less<>> rows_;
    std::vector<Unknown> unknown_;
};

/// "65536", "64K", "1M", "2G" (binary, optional B or iB at the end) to bytes.
Result<std::int64_t> parseBytes(std::string_view text);

/// The one of `known` with the least edit distance to `name`; empty when nothing is near (more than
/// a third differs).
std::string nearestName(std::string_view name, std::span<const std::string_view> known);

/// The process environment, for launch_environment and the tools. The only getenv of the library.
std::optional<std::string> environmentVariable(const char* name);

}  // namespace isthmus
