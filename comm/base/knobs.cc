#include "comm/base/knobs.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "comm/base/assert.hpp"

namespace isthmus {

namespace {

constexpr std::string_view kPrefix = "ISTHMUS_";

std::string lower(std::string_view text) {
    std::string result(text);
    for (char& letter : result) {
        if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
    }
    return result;
}

std::optional<std::int64_t> parseWhole(std::string_view text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
    return value;
}

/// Digits with at most one point; no sign, no exponent.
std::optional<double> parseDecimal(std::string_view text) {
    if (text.empty() || text.front() == '.' || text.back() == '.') return std::nullopt;
    const bool isPlain = std::all_of(text.begin(), text.end(), [](char letter) {
        return (letter >= '0' && letter <= '9') || letter == '.';
    });
    if (!isPlain || std::count(text.begin(), text.end(), '.') > 1) return std::nullopt;
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

std::optional<std::int64_t> parseMilliseconds(std::string_view text) {
    std::int64_t factor = 1;
    if (text.ends_with("ms")) {
        text.remove_suffix(2);
    } else if (text.ends_with("s")) {
        text.remove_suffix(1);
        factor = 1000;
    }
    const auto value = parseWhole(text);
    // 100 years in nanoseconds still fits 63 bits twice over.
    constexpr std::int64_t kMost = std::int64_t{100} * 365 * 24 * 3600 * 1000;
    if (!value || *value > kMost / factor) return std::nullopt;
    return *value * factor;
}

std::optional<bool> parseFlag(std::string_view text) {
    const std::string word = lower(text);
    if (word == "1" || word == "true" || word == "on" || word == "yes") return true;
    if (word == "0" || word == "false" || word == "off" || word == "no") return false;
    return std::nullopt;
}

std::string_view expectationOf(Unit unit) {
    switch (unit) {
    case Unit::kBytes:
        return "bytes, such as 65536, 64K or 1M";
    case Unit::kMilliseconds:
        return "milliseconds, such as 30000 or 30s";
    case Unit::kCount:
        return "a whole number, 0 or more";
    case Unit::kFlag:
        return "0 or 1 (or true, false, on, off, yes, no)";
    case Unit::kFraction:
        return "a number such as 0.5";
    case Unit::kNone:
    case Unit::kText:
        break;
    }
    return "text";
}

bool fits(Unit unit, std::string_view value) {
    switch (unit) {
    case Unit::kBytes:
        return parseBytes(value).ok();
    case Unit::kMilliseconds:
        return parseMilliseconds(value).has_value();
    case Unit::kCount:
        return parseWhole(value).has_value();
    case Unit::kFlag:
        return parseFlag(value).has_value();
    case Unit::kFraction:
        return parseDecimal(value).has_value();
    case Unit::kNone:
    case Unit::kText:
        break;
    }
    return true;
}

/// Levenshtein's distance, one row at a time.
std::size_t editDistance(std::string_view one, std::string_view other) {
    std::vector<std::size_t> row(other.size() + 1);
    for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
    for (std::size_t i = 0; i < one.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i + 1;
        for (std::size_t j = 0; j < other.size(); ++j) {
            const std::size_t above = row[j + 1];
            const std::size_t replaced = diagonal + (one[i] == other[j] ? 0 : 1);
            row[j + 1] = std::min({above + 1, row[j] + 1, replaced});
            diagonal = above;
        }
    }
    return row.back();
}

}  // namespace

std::string_view nameOf(Unit unit) {
    switch (unit) {
    case Unit::kBytes:
        return "bytes";
    case Unit::kMilliseconds:
        return "ms";
    case Unit::kCount:
        return "count";
    case Unit::kText:
        return "text";
    case Unit::kFlag:
        return "flag";
    case Unit::kFraction:
        return "fraction";
    case Unit::kNone:
        break;
    }
    return "";
}

Options Options::defaults(Tables tables) {
    Options options;
    for (const auto table : tables) {
        for (const Knob& knob : table) {
            ISTHMUS_ASSERT(knob.value.empty() || fits(knob.unit, knob.value));
            options.rows_.insert_or_assign(std::string(knob.name),
                                           Row{knob, std::string(knob.value), "default"});
        }
    }
    return options;
}

Result<Options> Options::fromEnvironment(Tables tables) {
    Options options = defaults(tables);
    std::vector<std::string_view> known;
    for (const auto& [name, row] : options.rows_) known.push_back(name);
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string_view line = *entry;
        const auto equals = line.find('=');
        if (!line.starts_with(kPrefix) || equals == std::string_view::npos) continue;
        const std::string_view name = line.substr(0, equals);
        if (options.rows_.find(name) == options.rows_.end()) {
            options.unknown_.push_back({std::string(name), nearestName(name, known)});
            continue;
        }
        const std::string_view value = line.substr(equals + 1);
        if (value.empty()) continue;  // `NAME= program` is the usual way to take a setting back
        ISTHMUS_TRY(options.set(name, value, "environment"));
    }
    std::sort(options.unknown_.begin(), options.unknown_.end(),
              [](const Unknown& left, const Unknown& right) { return left.name < right.name; });
    return options;
}

Status Options::set(std::string_view name, std::string_view value, std::string_view setBy) {
    const auto found = rows_.find(name);
    if (found == rows_.end()) {
        std::vector<std::string_view> known;
        for (const auto& [key, row] : rows_) known.push_back(key);
        const std::string nearest = nearestName(name, known);
        return Status::configuration("there is no option " + std::string(name) +
                                     (nearest.empty() ? "" : ", the nearest is " + nearest));
    }
    Row& row = found->second;
    if (!fits(row.knob.unit, value)) {
        return Status::configuration(std::string(name) + " (" + std::string(setBy) + ") says \"" +
                                     std::string(value) + "\", expected " +
                                     std::string(expectationOf(row.knob.unit)));
    }
    row.value = value;
    row.setBy = setBy;
    return {};
}

const Options::Row& Options::row(std::string_view name) const {
    const auto found = rows_.find(name);
    ISTHMUS_ASSERT(found != rows_.end());
    return found->second;
}

const std::string& Options::text(std::string_view name) const {
    return row(name).value;
}

std::int64_t Options::integer(std::string_view name) const {
    const Row& found = row(name);
    if (found.knob.unit == Unit::kBytes) {
        const auto bytes = parseBytes(found.value);
        return bytes.ok() ? *bytes : 0;
    }
    return parseWhole(found.value).value_or(0);
}

std::chrono::milliseconds Options::milliseconds(std::string_view name) const {
    return std::chrono::milliseconds(parseMilliseconds(row(name).value).value_or(0));
}

bool Options::flag(std::string_view name) const {
    return parseFlag(row(name).value).value_or(false);
}

double Options::fraction(std::string_view name) const {
    return parseDecimal(row(name).value).value_or(0);
}

std::vector<Options::Row> Options::rows() const {
    std::vector<Row> all;
    for (const auto& [name, row] : rows_) all.push_back(row);
    return all;
}

Result<std::int64_t> parseBytes(std::string_view text) {
    const auto wrong = [text] {
        std::string what(text);
        what += " is not a number of bytes (65536, 64K, 1.5M, 2GiB)";
        return Status::configuration(std::move(what));
    };
    const auto unitAt = std::min(text.find_first_not_of("0123456789."), text.size());
    const auto number = parseDecimal(text.substr(0, unitAt));
    const std::string suffix = lower(text.substr(unitAt));
    if (!number) return wrong();
    if (suffix.empty() || suffix == "b") {
        const auto whole = parseWhole(text.substr(0, unitAt));
        return whole ? Result<std::int64_t>(*whole) : wrong();
    }
    const std::string_view rest = std::string_view(suffix).substr(1);
    const auto power = std::string_view("kmgt").find(suffix.front());
    if (power == std::string_view::npos || !(rest.empty() || rest == "b" || rest == "ib")) {
        return wrong();
    }
    const double bytes = std::ldexp(*number, static_cast<int>(10 * (power + 1)));
    constexpr double kMost = 9.0e18;  // below 2^63, so that the conversion is defined
    if (bytes > kMost || bytes != std::floor(bytes)) return wrong();
    return static_cast<std::int64_t>(bytes);
}

std::string nearestName(std::string_view name, std::span<const std::string_view> known) {
    std::string_view best;
    std::size_t least = name.size() / 3;
    for (const std::string_view candidate : known) {
        const std::size_t distance = editDistance(name, candidate);
        if (distance > least || (distance == least && !best.empty())) continue;
        least = distance;
        best = candidate;
    }
    return std::string(best);
}

std::optional<std::string> environmentVariable(const char* name) {
    const char* value = std::getenv(name);
    if (value == nullptr) return std::nullopt;
    return std::string(value);
}

}  // namespace isthmus
