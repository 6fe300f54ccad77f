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
        "to {} ranks",
        text, kMaxRanks));
}

}  // namespace

Result<NodeSpec> NodeSpec::parse(std::string_view text) {
    NodeSpec spec;
    for (std::string_view rest = text;;) {
        const std::size_t plus = rest.find('+');
        const std::string_view term = rest.substr(0, plus);
        const std::size_t times = term.find('x');
        const auto nodes =
            times == term.npos ? std::optional(1) : positiveNumber(term.substr(0, times));
        const auto ranks = positiveNumber(times == term.npos ? term : term.substr(times + 1));
        if (!nodes || !ranks) return malformed(text);
        if (spec.ranks() + *nodes * *ranks > kMaxRanks) return malformed(text);
        spec.ranksOfNode_.insert(spec.ranksOfNode_.end(), static_cast<std::size_t>(*nodes), *ranks);
        if (plus == rest.npos) return spec;
        rest.remove_prefix(plus + 1);
    }
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

std::string NodeSpec::text() const {
    const bool isEven = std::all_of(ranksOfNode_.begin(), ranksOfNode_.end(),
                                    [this](int each) { return each == ranksOfNode_.front(); });
    if (isEven) return fmt::format("{}x{}", nodes(), ranksOfNode_.front());
    std::string joined;
    for (const int ranks : ranksOfNode_) {
        joined += (joined.empty() ? "" : "+") + std::to_string(ranks);
    }
    return joined;
}

}  // namespace isthmus::cli
