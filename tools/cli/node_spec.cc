#include "tools/cli/node_spec.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>

namespace isthmus::cli {
namespace {

constexpr int kMaxRanks = NodeSpec::kMaxRanks;

std::optional<int> positiveNumber(std::string_view text) {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool isWhole = error == std::errc() && end == text.data() + text.size();
    return isWhole && value >= 1 && value <= kMaxRanks ? std::optional(value) : std::nullopt;
}

Status malformed(std::string_view text) {
    return Status::invalidArgument(fmt::format(
        "nodes \"{}\" is neither MxR (M nodes of R ranks), nor R+R+... (one number a node), with 1 "
        "to {} ranks; a slash between racks: 2x4/2x4",
        text, kMaxRanks));
}

}  // namespace

Status NodeSpec::addRack(std::string_view rack, std::string_view whole) {
    for (std::string_view rest = rack;;) {
        const std::size_t plus = rest.find('+');
        const std::string_view term = rest.substr(0, plus);
        const std::size_t times = term.find('x');
        const auto nodes =
            times == term.npos ? std::optional(1) : positiveNumber(term.substr(0, times));
        const auto ranks = positiveNumber(times == term.npos ? term : term.substr(times + 1));
        if (!nodes || !ranks) return malformed(whole);
        if (this->ranks() + *nodes * *ranks > kMaxRanks) return malformed(whole);
        ranksOfNode_.insert(ranksOfNode_.end(), static_cast<std::size_t>(*nodes), *ranks);
        if (plus == rest.npos) return {};
        rest.remove_prefix(plus + 1);
    }
}

Result<NodeSpec> NodeSpec::parse(std::string_view text) {
    NodeSpec spec;
    int rack = 0;
    for (std::string_view rest = text;;) {
        const std::size_t slash = rest.find('/');
        ISTHMUS_TRY(spec.addRack(rest.substr(0, slash), text));
        spec.racks_.resize(spec.ranksOfNode_.size(), rack++);
        if (slash == rest.npos) break;
        rest.remove_prefix(slash + 1);
    }
    if (rack == 1) spec.racks_.clear();
    return spec;
}

Result<NodeSpec::Order> NodeSpec::parseOrder(std::string_view text) {
    if (text == "block") return Order::kBlock;
    if (text == "round-robin") return Order::kRoundRobin;
    return Status::invalidArgument(
        fmt::format("rank order \"{}\" is neither block nor round-robin", text));
}

int NodeSpec::ranks() const {
    return std::accumulate(ranksOfNode_.begin(), ranksOfNode_.end(), 0);
}

std::vector<int> NodeSpec::nodeOfRank(Order order) const {
    std::vector<int> result;
    if (order == Order::kBlock) {
        for (int node = 0; node < nodes(); ++node) {
            result.insert(result.end(), static_cast<std::size_t>(ranksOf(node)), node);
        }
        return result;
    }
    const int rounds = *std::max_element(ranksOfNode_.begin(), ranksOfNode_.end());
    for (int round = 0; round < rounds; ++round) {
        for (int node = 0; node < nodes(); ++node) {
            if (round < ranksOf(node)) result.push_back(node);
        }
    }
    return result;
}

std::string NodeSpec::textOf(std::size_t first, std::size_t nodes) const {
    const auto begin = ranksOfNode_.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = begin + static_cast<std::ptrdiff_t>(nodes);
    if (std::all_of(begin, end, [&](int each) { return each == *begin; })) {
        return fmt::format("{}x{}", nodes, *begin);
    }
    std::string joined;
    for (auto ranks = begin; ranks != end; ++ranks) {
        joined += (joined.empty() ? "" : "+") + std::to_string(*ranks);
    }
    return joined;
}

std::string NodeSpec::text() const {
    if (racks_.empty()) return textOf(0, ranksOfNode_.size());
    std::string joined;
    for (std::size_t first = 0; first < racks_.size();) {
        const auto nodes =
            static_cast<std::size_t>(std::count(racks_.begin(), racks_.end(), racks_[first]));
        joined += (joined.empty() ? "" : "/") + textOf(first, nodes);
        first += nodes;
    }
    return joined;
}

}  // namespace isthmus::cli
