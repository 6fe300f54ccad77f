#include "scheduler/cluster/cluster.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>

namespace isthmus::scheduler {
namespace {

bool isDigit(char letter) {
    return letter >= '0' && letter <= '9';
}

/// The digits at the front of `text`, without leading zeros.
std::string_view digitsOf(std::string_view text) {
    std::size_t end = 0;
    while (end < text.size() && isDigit(text[end])) ++end;
    std::size_t begin = 0;
    while (begin + 1 < end && text[begin] == '0') ++begin;
    return text.substr(begin, end - begin);
}

void skipDigits(std::string_view& text) {
    while (!text.empty() && isDigit(text.front())) text.remove_prefix(1);
}

int comparePeople(std::string_view left, std::string_view right) {
    while (!left.empty() && !right.empty()) {
        if (isDigit(left.front()) && isDigit(right.front())) {
            const std::string_view one = digitsOf(left);
            const std::string_view other = digitsOf(right);
            if (one.size() != other.size()) return one.size() < other.size() ? -1 : 1;
            if (const int order = one.compare(other); order != 0) return order;
            skipDigits(left);
            skipDigits(right);
            continue;
        }
        if (left.front() != right.front()) return left.front() < right.front() ? -1 : 1;
        left.remove_prefix(1);
        right.remove_prefix(1);
    }
    return static_cast<int>(!left.empty()) - static_cast<int>(!right.empty());
}

/// By groups, then by name; names that people count alike (n1, n01) by their letters.
bool nodeBefore(const Node& left, const Node& right) {
    for (std::size_t level = 0; level < std::min(left.at.size(), right.at.size()); ++level) {
        if (left.at[level] != right.at[level]) {
            return comesBefore(left.at[level], right.at[level]);
        }
    }
    return comesBefore(left.name, right.name);
}

}  // namespace

bool comesBefore(std::string_view left, std::string_view right) {
    const int order = comparePeople(left, right);
    return order != 0 ? order < 0 : left < right;
}

double Node::bitsPerSecond() const {
    return std::accumulate(cards.begin(), cards.end(), 0.0,
                           [](double sum, const Card& card) { return sum + card.bitsPerSecond; });
}

int Cluster::ranks() const {
    return std::accumulate(nodes.begin(), nodes.end(), 0,
                           [](int sum, const Node& node) { return sum + node.size(); });
}

std::vector<int> Cluster::sizes() const {
    std::vector<int> sizes;
    sizes.reserve(nodes.size());
    for (const Node& node : nodes) sizes.push_back(node.size());
    return sizes;
}

void sortNodes(Cluster& cluster) {
    std::sort(cluster.nodes.begin(), cluster.nodes.end(), nodeBefore);
}

std::vector<int> regularShape(const Cluster& cluster) {
    if (cluster.nodes.empty()) return {};
    const Node& first = cluster.nodes.front();
    std::vector<int> shape;
    std::size_t groups = 1;
    for (std::size_t level = 0; level < first.at.size(); ++level) {
        // Nodes are sorted: members of a group stand together.
        std::map<std::vector<std::string>, std::map<std::string, int>> members;
        for (const Node& node : cluster.nodes) {
            const auto end = node.at.begin() + static_cast<std::ptrdiff_t>(level);
            ++members[std::vector<std::string>(node.at.begin(), end)][node.at[level]];
        }
        const std::size_t each = members.begin()->second.size();
        for (const auto& [group, inside] : members) {
            if (inside.size() != each) return {};
        }
        shape.push_back(static_cast<int>(each));
        groups *= each;
    }
    std::map<std::vector<std::string>, std::size_t> nodesOf;
    for (const Node& node : cluster.nodes) {
        ++nodesOf[node.at];
        if (node.size() != first.size() || node.bitsPerSecond() != first.bitsPerSecond()) return {};
    }
    for (const auto& [group, count] : nodesOf) {
        if (count * groups != cluster.nodes.size()) return {};
    }
    shape.push_back(static_cast<int>(cluster.nodes.size() / groups));
    shape.push_back(first.size());
    return shape;
}

std::string Cluster::text() const {
    std::string text;
    const std::vector<int> shape = regularShape(*this);
    for (const int members : shape) text += (text.empty() ? "" : "x") + std::to_string(members);
    if (!shape.empty()) return text;
    for (std::size_t at = 0; at < nodes.size();) {
        std::size_t end = at;
        while (end < nodes.size() && nodes[end].size() == nodes[at].size()) ++end;
        text += at == 0 ? "" : "+";
        // "3+3+2" as people write it; many alike are counted.
        const std::string size = std::to_string(nodes[at].size());
        if (end - at > 3) {
            text += std::to_string(end - at) + "x" + size;
        } else {
            for (std::size_t node = at; node < end; ++node) text += (node == at ? "" : "+") + size;
        }
        at = end;
    }
    return text;
}

Result<Cluster> without(const Cluster& cluster, const std::string& lost) {
    const std::size_t colon = lost.rfind(':');
    const std::string name = lost.substr(0, colon);
    Cluster rest = cluster;
    const auto node = std::find_if(rest.nodes.begin(), rest.nodes.end(),
                                   [&](const Node& each) { return each.name == name; });
    if (node == rest.nodes.end()) {
        return Status::invalidArgument("lost " + lost + ": there is no node \"" + name + "\"");
    }
    if (colon == lost.npos) {
        rest.nodes.erase(node);
    } else {
        int index = -1;
        const char* end = lost.data() + lost.size();
        const auto [stop, error] = std::from_chars(lost.data() + colon + 1, end, index);
        const auto device = std::find_if(node->devices.begin(), node->devices.end(),
                                         [&](const Device& each) { return each.index == index; });
        if (error != std::errc() || stop != end || device == node->devices.end()) {
            return Status::invalidArgument("lost " + lost + ": node \"" + name +
                                           "\" has no device \"" + lost.substr(colon + 1) + "\"");
        }
        node->devices.erase(device);
        if (node->devices.empty()) rest.nodes.erase(node);
    }
    if (rest.nodes.empty()) return Status::invalidArgument("lost " + lost + ": nothing is left");
    return rest;
}

}  // namespace isthmus::scheduler
