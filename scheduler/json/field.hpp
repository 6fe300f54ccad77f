#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <isthmus/status.hpp>

namespace isthmus::scheduler {

/// A value inside a JSON document that a person wrote, with the path to it: "nodes[2].devices".
///
/// What is wrong goes to the Reading that the document was opened with: the first cause stays, and
/// readers return something harmless, so that code reads a whole object and asks once at the end.
class Field {
public:
    /// The first thing that was wrong: "nodes[2].devices: is no whole number of at least 1".
    struct Reading {
        Status failure;
    };

    /// `value` and `reading` outlive the field.
    Field(const nlohmann::json& value, Reading& reading) : value_(&value), reading_(&reading) {}

    bool exists() const { return value_ != nullptr; }
    bool isNull() const;
    bool isObject() const;
    bool isList() const;
    bool isText() const;
    bool isNumber() const;
    const std::string& path() const { return path_; }

    /// Wrong unless it is an object whose fields all are among `known`.
    void hasOnly(std::initializer_list<std::string_view> known) const;
    /// The member; one that is not there exists() not, and reads as what the caller falls back to.
    Field operator[](std::string_view name) const;
    /// The elements; wrong unless it is a list. A field that does not exist has none.
    std::vector<Field> elements() const;
    /// Names of an object's members, sorted.
    std::vector<std::string> names() const;

    /// Wrong unless it is a whole number within the bounds. Without `otherwise` it must exist.
    std::int64_t integer(std::int64_t least, std::int64_t most,
                         std::optional<std::int64_t> otherwise = std::nullopt) const;
    /// Wrong unless it is a finite number of at least `least`.
    double number(double least, std::optional<double> otherwise = std::nullopt) const;
    std::string text(const std::optional<std::string>& otherwise = std::nullopt) const;
    bool truth(std::optional<bool> otherwise = std::nullopt) const;

    /// Says that the value here is wrong: `why` as in "is no number".
    void refuse(const std::string& why) const;

private:
    Field(const nlohmann::json* value, Reading& reading, std::string path)
        : value_(value), reading_(&reading), path_(std::move(path)) {}
    bool isMissing(bool isOptional) const;

    const nlohmann::json* value_;
    Reading* reading_;
    std::string path_;
};

/// Largest whole number of a document: 2^53, which every reader of JSON keeps exactly (RFC 8259,
/// section 6).
inline constexpr std::int64_t kMostInJson = std::int64_t{1} << 53;

/// The text of a plain file of at most 64 MiB. kConfiguration names the file and what is wrong.
Result<std::string> textOfFile(const std::string& path);

/// Parses `text`; kConfiguration tells the byte where it stops being JSON.
Result<nlohmann::json> parseJson(const std::string& text);

}  // namespace isthmus::scheduler
