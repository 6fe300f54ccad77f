#include "topology/discover/small_file.hpp"

#include <charconv>
#include <fstream>

namespace isthmus {

std::optional<std::string> readLine(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    if (!std::getline(file, line)) return std::nullopt;
    return line;
}

std::optional<std::int64_t> readNumber(const std::string& path) {
    const auto line = readLine(path);
    if (!line) return std::nullopt;
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(line->data(), line->data() + line->size(), value);
    if (error != std::errc()) return std::nullopt;
    return value;
}

}  // namespace isthmus
