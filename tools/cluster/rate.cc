#include "tools/cluster/rate.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "comm/base/bit_rate.hpp"

namespace isthmus::cluster {
namespace {

constexpr std::uint64_t kMinBurstBytes = 96 * 1024;
constexpr std::uint64_t kMaxBurstBytes = 512 * 1024;
constexpr double kBurstSeconds = 0.42e-3;

// Below, one full packet takes longer than a test; above, no veth pair follows (limits of the
// kernel, measured: 80 Gbit/s).
constexpr double kMinBitsPerSecond = 8e3;
constexpr double kMaxBitsPerSecond = 400e9;

constexpr std::array<std::pair<std::string_view, double>, 4> kUnits{
    {{"gbit", 1e9}, {"mbit", 1e6}, {"kbit", 1e3}, {"bit", 1.0}}};

}  // namespace

Result<Rate> Rate::parse(std::string_view text) {
    if (text == "none") return Rate{};
    if (text == "cut") return Rate{0, true};
    const auto bits = bitsPerSecondOf(text);
    if (bits && *bits >= kMinBitsPerSecond && *bits <= kMaxBitsPerSecond)
        return Rate{static_cast<std::uint64_t>(*bits), false};
    return Status::invalidArgument(
        fmt::format("rate \"{}\" is neither a number with gbit, mbit or kbit (8kbit to 400gbit) "
                    "nor none nor cut",
                    text));
}

std::string Rate::text() const {
    if (isCut) return "cut";
    if (!isLimited()) return "none";
    for (const auto& [unit, factor] : kUnits) {
        const auto bits = static_cast<std::uint64_t>(factor);
        if (bitsPerSecond % bits == 0) return fmt::format("{}{}", bitsPerSecond / bits, unit);
    }
    return fmt::format("{}bit", bitsPerSecond);
}

Result<CardRates> CardRates::parse(std::string_view text) {
    CardRates rates;
    rates.cards.clear();
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find('+', begin), text.size());
        const Result<Rate> rate = Rate::parse(text.substr(begin, end - begin));
        if (!rate.ok()) return rate.status();
        rates.cards.push_back(*rate);
        begin = end + 1;
    }
    if (rates.cards.size() > kMaxCards) {
        return Status::invalidArgument(fmt::format("\"{}\" is {} cards; a node can have {}", text,
                                                   rates.cards.size(), kMaxCards));
    }
    return rates;
}

std::string CardRates::text() const {
    std::string joined;
    for (const Rate& rate : cards) joined += (joined.empty() ? "" : "+") + rate.text();
    return joined;
}

bool CardRates::isCut() const {
    return std::any_of(cards.begin(), cards.end(), [](const Rate& rate) { return rate.isCut; });
}

std::uint64_t CardRates::bitsPerSecond() const {
    std::uint64_t sum = 0;
    for (const Rate& rate : cards) {
        if (!rate.isLimited() && !rate.isCut) return 0;
        sum += rate.bitsPerSecond;
    }
    return sum;
}

std::uint64_t Rate::burstBytes() const {
    const auto bytes =
        static_cast<std::uint64_t>(static_cast<double>(bitsPerSecond) / 8 * kBurstSeconds);
    return std::clamp(bytes, kMinBurstBytes, kMaxBurstBytes);
}

std::string Rate::queueText() const {
    // limit: 2 MB of queue keeps every congestion control from losing whole super-packets.
    return fmt::format("tbf rate {}bit burst {} limit 2097152", bitsPerSecond, burstBytes());
}

}  // namespace isthmus::cluster
