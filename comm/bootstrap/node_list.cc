#include <charconv>

#include "comm/bootstrap/launch_environment.hpp"

namespace isthmus {

namespace {

/// More nodes than any machine has; a mistyped range ends here.
constexpr std::size_t kMostNodes = 1'000'000;
constexpr unsigned long kMostTasks = 1'000'000;  // of one node, likewise

Status wrongList(std::string_view text) {
    return Status::configuration("cannot read the node list " + std::string(text));
}

/// Splits at commas outside brackets.
std::vector<std::string_view> splitOutside(std::string_view text) {
    std::vector<std::string_view> parts;
    int depth = 0;
    std::size_t start = 0;
    for (std::size_t i = 0; i <= text.size(); ++i) {
        if (i == text.size() || (text[i] == ',' && depth == 0)) {
            parts.push_back(text.substr(start, i - start));
            start = i + 1;
        } else if (text[i] == '[') {
            ++depth;
        } else if (text[i] == ']') {
            --depth;
        }
    }
    return parts;
}

std::string padded(unsigned long number, std::size_t digits) {
    std::string text = std::to_string(number);
    if (text.size() < digits) text.insert(0, digits - text.size(), '0');
    return text;
}

bool readNumber(std::string_view text, unsigned long& number) {
    const auto* last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, number);
    return !text.empty() && error == std::errc() && end == last;
}

/// The numbers of "01-02,07", padded as they are written. Empty when that is no list of numbers.
std::vector<std::string> expandRanges(std::string_view text) {
    std::vector<std::string> numbers;
    for (const std::string_view part : splitOutside(text)) {
        const auto dash = part.find('-');
        const std::string_view from = part.substr(0, dash);
        const std::string_view to = dash == std::string_view::npos ? from : part.substr(dash + 1);
        unsigned long first = 0;
        unsigned long last = 0;
        if (!readNumber(from, first) || !readNumber(to, last) || last < first ||
            last - first >= kMostNodes - numbers.size()) {
            return {};
        }
        for (unsigned long i = first; i <= last; ++i) numbers.push_back(padded(i, from.size()));
    }
    return numbers;
}

/// Names of one part: any number of brackets, each multiplying what stands before it.
std::vector<std::string> expandPart(std::string_view part) {
    std::vector<std::string> names{""};
    while (!part.empty()) {
        const auto open = part.find('[');
        for (std::string& name : names) name += part.substr(0, open);
        if (open == std::string_view::npos) break;
        const auto close = part.find(']', open);
        if (close == std::string_view::npos) return {};
        const auto numbers = expandRanges(part.substr(open + 1, close - open - 1));
        if (numbers.empty() || names.size() * numbers.size() > kMostNodes) return {};
        std::vector<std::string> longer;
        for (const std::string& name : names) {
            for (const std::string& number : numbers) longer.push_back(name + number);
        }
        names = std::move(longer);
        part.remove_prefix(close + 1);
    }
    return names;
}

}  // namespace

Result<std::vector<std::string>> expandNodeList(std::string_view text) {
    std::vector<std::string> nodes;
    for (const std::string_view part : splitOutside(text)) {
        auto names = expandPart(part);
        if (part.empty() || names.empty() || names.front().find(']') != std::string::npos) {
            return wrongList(text);
        }
        nodes.insert(nodes.end(), names.begin(), names.end());
        if (nodes.size() > kMostNodes) return wrongList(text);
    }
    return nodes;
}

Result<std::vector<int>> expandTaskCounts(std::string_view text) {
    const auto wrong = [&] {
        return Status::configuration("cannot read the tasks of each node " + std::string(text));
    };
    std::vector<int> counts;
    for (const std::string_view part : splitOutside(text)) {
        const auto open = part.find("(x");
        unsigned long tasks = 0;
        unsigned long nodes = 1;
        bool isRight = readNumber(part.substr(0, open), tasks) && tasks <= kMostTasks;
        if (open != std::string_view::npos) {
            const std::string_view times = part.substr(open + 2);
            isRight = isRight && times.ends_with(')') &&
                      readNumber(times.substr(0, times.size() - 1), nodes);
        }
        if (!isRight || nodes > kMostNodes - counts.size()) return wrong();
        counts.insert(counts.end(), nodes, static_cast<int>(tasks));
    }
    return counts;
}

}  // namespace isthmus
