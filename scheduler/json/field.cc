#include "scheduler/json/field.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace isthmus::scheduler {

using Json = nlohmann::json;

bool Field::isNull() const {
    return exists() && value_->is_null();
}
bool Field::isObject() const {
    return exists() && value_->is_object();
}
bool Field::isList() const {
    return exists() && value_->is_array();
}
bool Field::isText() const {
    return exists() && value_->is_string();
}
bool Field::isNumber() const {
    return exists() && value_->is_number();
}

void Field::refuse(const std::string& why) const {
    if (!reading_->failure.ok()) return;
    reading_->failure =
        Status::configuration((path_.empty() ? "the document" : path_) + ": " + why);
}

bool Field::isMissing(bool isOptional) const {
    if (exists()) return false;
    if (!isOptional) refuse("is missing");
    return true;
}

void Field::hasOnly(std::initializer_list<std::string_view> known) const {
    if (isMissing(false)) return;
    if (!value_->is_object()) return refuse("is no object");
    for (const auto& [name, unused] : value_->items()) {
        if (std::find(known.begin(), known.end(), name) != known.end()) continue;
        std::string all;
        for (const std::string_view each : known) all.append(all.empty() ? "" : ", ").append(each);
        return refuse("unknown field \"" + name + "\"; known: " + all);
    }
}

Field Field::operator[](std::string_view name) const {
    std::string path = path_.empty() ? std::string(name) : path_ + "." + std::string(name);
    const Json* found = nullptr;
    if (isObject()) {
        const auto at = value_->find(std::string(name));
        if (at != value_->end()) found = &*at;
    }
    return {found, *reading_, std::move(path)};
}

std::vector<Field> Field::elements() const {
    std::vector<Field> all;
    if (!exists()) return all;
    if (!value_->is_array()) {
        refuse("is no list");
        return all;
    }
    for (std::size_t index = 0; index < value_->size(); ++index) {
        all.push_back(
            Field(&value_->at(index), *reading_, path_ + "[" + std::to_string(index) + "]"));
    }
    return all;
}

std::vector<std::string> Field::names() const {
    std::vector<std::string> all;
    if (!isObject()) return all;
    for (const auto& [name, unused] : value_->items()) all.push_back(name);
    return all;
}

std::int64_t Field::integer(std::int64_t least, std::int64_t most,
                            std::optional<std::int64_t> otherwise) const {
    if (isMissing(otherwise.has_value())) return otherwise.value_or(least);
    const bool isHuge = value_->is_number_unsigned() &&
                        value_->get<std::uint64_t>() > static_cast<std::uint64_t>(kMostInJson);
    if (value_->is_number_integer() && !isHuge) {
        const auto value = value_->get<std::int64_t>();
        if (value >= least && value <= most) return value;
    }
    refuse("is no whole number of " + std::to_string(least) + " to " + std::to_string(most));
    return otherwise.value_or(least);
}

double Field::number(double least, std::optional<double> otherwise) const {
    if (isMissing(otherwise.has_value())) return otherwise.value_or(least);
    if (value_->is_number()) {
        const auto value = value_->get<double>();
        if (std::isfinite(value) && value >= least) return value;
    }
    refuse("is no number of at least " + Json(least).dump());
    return otherwise.value_or(least);
}

std::string Field::text(const std::optional<std::string>& otherwise) const {
    if (isMissing(otherwise.has_value())) return otherwise.value_or("");
    if (value_->is_string()) return value_->get<std::string>();
    refuse("is no text");
    return otherwise.value_or("");
}

bool Field::truth(std::optional<bool> otherwise) const {
    if (isMissing(otherwise.has_value())) return otherwise.value_or(false);
    if (value_->is_boolean()) return value_->get<bool>();
    refuse("is neither true nor false");
    return otherwise.value_or(false);
}

Result<std::string> textOfFile(const std::string& path) {
    constexpr std::size_t kMost = std::size_t{64} << 20;  // 131,072 ranks take 20 MiB of it
    const auto failed = [&](const std::string& why) {
        return Status::configuration("cannot read " + path + ": " + why);
    };
    // A pipe would wait for a writer.
    std::error_code error;
    if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error)) {
        return failed("is not a plain file");
    }
    std::ifstream file(path);
    if (!file) return failed(std::strerror(errno));
    std::string text;
    std::vector<char> piece(64 << 10);
    do {
        file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
        if (file.bad()) return failed(std::strerror(errno));
        text.append(piece.data(), static_cast<std::size_t>(file.gcount()));
        if (text.size() > kMost) return failed("it has more than 64 MiB");
    } while (file);
    return text;
}

Result<Json> parseJson(const std::string& text) {
    try {  // the parser reports by exceptions; they end here
        return Json::parse(text);
    } catch (const Json::exception& cause) {
        return Status::configuration(cause.what());
    }
}

}  // namespace isthmus::scheduler
