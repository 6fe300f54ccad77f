#include "comm/communicator/racks.hpp"

#include <algorithm>
#include <map>

namespace isthmus {
namespace {

std::ptrdiff_t depthOf(const std::string& name) {
    return std::count(name.begin(), name.end(), '/') + 1;
}

/// The first `parts` parts of a name.
std::string upTo(const std::string& name, std::ptrdiff_t parts) {
    std::size_t end = 0;
    for (std::ptrdiff_t part = 0; part < parts; ++part) {
        end = std::min(name.find('/', end + (part > 0 ? 1 : 0)), name.size());
    }
    return name.substr(0, end);
}

std::vector<int> numbered(const std::vector<std::string>& names) {
    std::map<std::string, int> known;
    std::vector<int> numbers;
    for (const std::string& name : names) {
        numbers.push_back(known.emplace(name, static_cast<int>(known.size())).first->second);
    }
    return numbers;
}

int unitsOf(const std::vector<int>& numbers) {
    return numbers.empty() ? 0 : *std::max_element(numbers.begin(), numbers.end()) + 1;
}

/// What a node's ranks say together.
RackWord wordOf(const std::vector<Rank>& node, const std::vector<RackWord>& words) {
    RackWord said;
    for (const Rank rank : node) {
        const RackWord& word = words[static_cast<std::size_t>(rank)];
        if (said.name.empty()) said.name = word.name;
        said.bitsPerSecond = std::max(said.bitsPerSecond, word.bitsPerSecond);
        said.lineBitsPerSecond = std::max(said.lineBitsPerSecond, word.lineBitsPerSecond);
    }
    return said;
}

/// Whether no rack's link is narrower than its nodes' cards together, as far as they are known.
bool areLinksWide(const std::vector<RackWord>& nodes, const std::vector<int>& racks) {
    std::map<int, std::pair<std::uint64_t, std::uint64_t>> rates;  // link, cards
    for (std::size_t node = 0; node < nodes.size(); ++node) {
        if (nodes[node].lineBitsPerSecond == 0) return false;
        auto& [link, cards] = rates[racks[node]];
        link = std::max(link, nodes[node].bitsPerSecond);
        cards += nodes[node].lineBitsPerSecond;
    }
    return std::all_of(rates.begin(), rates.end(),
                       [](const auto& rack) { return rack.second.first >= rack.second.second; });
}

}  // namespace

Result<std::vector<std::vector<int>>> racksOf(const Layout& layout,
                                              const std::vector<RackWord>& words) {
    std::vector<RackWord> nodes;
    for (const std::vector<Rank>& node : layout.nodes) nodes.push_back(wordOf(node, words));
    const std::ptrdiff_t depth = depthOf(nodes.front().name);
    for (const RackWord& node : nodes) {
        if (node.name.empty()) return std::vector<std::vector<int>>{};
        if (depthOf(node.name) == depth) continue;
        return Status::configuration("racks are named with unlike many parts: ISTHMUS_RACK is \"" +
                                     nodes.front().name + "\" and \"" + node.name + "\"");
    }
    std::vector<std::vector<int>> racks;
    for (std::ptrdiff_t parts = depth; parts > 0; --parts) {
        std::vector<std::string> names;
        for (const RackWord& node : nodes) names.push_back(upTo(node.name, parts));
        std::vector<int> numbers = numbered(names);
        const int units = unitsOf(numbers);
        const int within = racks.empty() ? static_cast<int>(nodes.size()) : unitsOf(racks.back());
        if (units > 1 && units < within) racks.push_back(std::move(numbers));
    }
    if (!racks.empty() && areLinksWide(nodes, racks.front())) racks.clear();
    return racks;
}

}  // namespace isthmus
