#include <charconv>

#include "tools/import/formats.hpp"

namespace isthmus::foreign {
namespace {

Status wrong(const std::string& list, const std::string& why) {
    return Status::configuration("host list \"" + list + "\": " + why);
}

/// "01-03" or "7": numbers keep the width of the first.
Status addRange(const std::string& list, const std::string& prefix, const std::string& range,
                std::vector<std::string>& names) {
    const std::size_t dash = range.find('-');
    const std::string low = range.substr(0, dash);
    const std::string high = dash == range.npos ? low : range.substr(dash + 1);
    const auto numberOf = [](const std::string& digits) {
        std::int64_t number = -1;
        const char* end = digits.data() + digits.size();
        const auto [stop, error] = std::from_chars(digits.data(), end, number);
        return error == std::errc() && stop == end ? number : -1;
    };
    const std::int64_t first = numberOf(low);
    const std::int64_t last = numberOf(high);
    if (first < 0 || last < first || last - first >= scheduler::kMostRanks) {
        return wrong(list, "\"" + range + "\" is no range of numbers");
    }
    for (std::int64_t number = first; number <= last; ++number) {
        std::string digits = std::to_string(number);
        if (digits.size() < low.size()) digits.insert(0, low.size() - digits.size(), '0');
        names.push_back(prefix + digits);
    }
    return {};
}

/// One entry of the outer list: a prefix, and any number of bracketed parts behind each other.
Status addEntry(const std::string& list, const std::string& entry,
                std::vector<std::string>& names) {
    std::vector<std::string> heads = {""};
    for (std::size_t at = 0; at < entry.size();) {
        const std::size_t open = std::min(entry.find('[', at), entry.size());
        const std::string plain = entry.substr(at, open - at);
        if (plain.find(']') != plain.npos) return wrong(list, "a bracket closes that is not open");
        for (std::string& head : heads) head += plain;
        if (open == entry.size()) break;
        const std::size_t close = entry.find(']', open);
        if (close == entry.npos) return wrong(list, "a bracket is not closed");
        std::vector<std::string> longer;
        for (const std::string& head : heads) {
            for (std::size_t begin = open + 1; begin <= close;) {
                const std::size_t end = std::min(entry.find(',', begin), close);
                ISTHMUS_TRY(addRange(list, head, entry.substr(begin, end - begin), longer));
                begin = end + 1;
            }
        }
        if (longer.size() > static_cast<std::size_t>(scheduler::kMostRanks)) {
            return wrong(list, "has more than " + std::to_string(scheduler::kMostRanks) + " names");
        }
        heads = std::move(longer);
        at = close + 1;
    }
    names.insert(names.end(), heads.begin(), heads.end());
    return {};
}

}  // namespace

Result<std::vector<std::string>> hostsOf(const std::string& list) {
    std::vector<std::string> names;
    int depth = 0;
    std::string entry;
    for (const char letter : list + ",") {
        if (letter == '[') ++depth;
        if (letter == ']') --depth;
        if (letter != ',' || depth > 0) {
            if (letter != ' ') entry += letter;
            continue;
        }
        if (entry.empty()) return wrong(list, "has an empty name");
        ISTHMUS_TRY(addEntry(list, entry, names));
        entry.clear();
    }
    if (depth != 0) return wrong(list, "a bracket is not closed");
    return names;
}

}  // namespace isthmus::foreign
