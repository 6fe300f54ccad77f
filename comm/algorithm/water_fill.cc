#include "comm/algorithm/water_fill.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "comm/base/assert.hpp"

namespace isthmus {
namespace {

// Each halves what is not known of the time; a double has 53 bits.
constexpr int kHalvings = 60;

int contributorsOf(std::span<const Owner> owners) {
    return static_cast<int>(std::count_if(owners.begin(), owners.end(),
                                          [](const Owner& owner) { return owner.contributes; }));
}

/// What each card can own when all may take `seconds` for each byte of the operand.
std::vector<double> mostWithin(std::span<const Owner> owners, double seconds) {
    const int contributors = contributorsOf(owners);
    std::vector<double> shares;
    for (const Owner& owner : owners) {
        const double carried = seconds * owner.bytesPerSecond;
        const double share = !owner.contributes ? carried / contributors
                             : contributors > 2 ? (carried - 1) / (contributors - 2)
                                                : 0;
        shares.push_back(std::clamp(share, 0.0, 1.0));
    }
    return shares;
}

double sumOf(std::span<const double> shares) {
    return std::accumulate(shares.begin(), shares.end(), 0.0);
}

/// Seconds for each byte of what a contributor must send whatever it owns.
double leastSeconds(std::span<const Owner> owners) {
    double least = 0;
    for (const Owner& owner : owners) {
        if (owner.contributes) least = std::max(least, 1 / owner.bytesPerSecond);
    }
    return least;
}

/// Seconds for each byte of the operand until the slowest card is done.
double secondsFor(std::span<const Owner> owners, const std::vector<int>& shares) {
    const double units = std::accumulate(shares.begin(), shares.end(), 0);
    const double contributors = contributorsOf(owners);
    double slowest = 0;
    for (std::size_t index = 0; index < owners.size(); ++index) {
        const double share = shares[index] / units;
        const double carried =
            owners[index].contributes ? 1 + (contributors - 2) * share : contributors * share;
        slowest = std::max(slowest, carried / owners[index].bytesPerSecond);
    }
    return slowest;
}

/// One or two contributors: their cards carry the same whatever they own.
WaterFill ofFew(std::span<const Owner> owners) {
    const int contributors = contributorsOf(owners);
    WaterFill fill;
    fill.secondsPerByte = contributors == 1 ? 0 : leastSeconds(owners);
    fill.shares = mostWithin(owners, fill.secondsPerByte);
    const double helped = sumOf(fill.shares);
    for (std::size_t index = 0; index < owners.size(); ++index) {
        double& share = fill.shares[index];
        if (helped > 1) share /= helped;
        if (owners[index].contributes) share = std::max(0.0, 1 - helped) / contributors;
    }
    return fill;
}

}  // namespace

WaterFill waterFill(std::span<const Owner> owners) {
    ISTHMUS_ASSERT(contributorsOf(owners) > 0);
    for (const Owner& owner : owners) ISTHMUS_ASSERT(owner.bytesPerSecond > 0);
    if (contributorsOf(owners) <= 2) return ofFew(owners);
    double low = leastSeconds(owners);
    // Everything to one contributor: 1 + (n - 2) of the operand.
    double high = low * (contributorsOf(owners) - 1);
    if (sumOf(mostWithin(owners, low)) >= 1) high = low;
    for (int halving = 0; halving < kHalvings; ++halving) {
        const double middle = (low + high) / 2;
        (sumOf(mostWithin(owners, middle)) < 1 ? low : high) = middle;
    }
    WaterFill fill{mostWithin(owners, high), high};
    // A slow contributor's own bytes may leave the others time to spare: nobody owns more than is.
    const double sum = sumOf(fill.shares);
    for (double& share : fill.shares) share /= sum;
    return fill;
}

std::vector<int> inUnits(std::span<const double> shares, int units) {
    std::vector<int> whole;
    std::vector<std::size_t> byRest(shares.size());
    std::iota(byRest.begin(), byRest.end(), std::size_t{0});
    const auto restOf = [&](std::size_t index) {
        return shares[index] * units - std::floor(shares[index] * units);
    };
    for (const double share : shares) whole.push_back(static_cast<int>(std::floor(share * units)));
    std::stable_sort(byRest.begin(), byRest.end(), [&](std::size_t one, std::size_t other) {
        return restOf(one) > restOf(other);
    });
    int left = units - std::accumulate(whole.begin(), whole.end(), 0);
    for (std::size_t next = 0; left > 0 && !byRest.empty(); ++next, --left) {
        ++whole[byRest[next % byRest.size()]];
    }
    return whole;
}

std::vector<int> equalCards(const std::vector<bool>& contributes) {
    const int contributors =
        static_cast<int>(std::count(contributes.begin(), contributes.end(), true));
    const int helpers = static_cast<int>(contributes.size()) - contributors;
    ISTHMUS_ASSERT(contributors > 0);
    const bool isOnlyOne = contributors == 1;
    const int own = isOnlyOne ? 1 : std::max(0, contributors - helpers);
    const int helped = isOnlyOne || helpers == 0 ? 0 : own > 0 ? 2 * (contributors - 1) : 1;
    const int common = std::gcd(own, helped);
    std::vector<int> shares;
    for (const bool contributor : contributes) {
        shares.push_back((contributor ? own : helped) / common);
    }
    return shares;
}

std::vector<int> unequalShares(std::span<const double> bytesPerSecond,
                               std::vector<bool> contributes) {
    // Parts of a 64th are fine enough: a card is off by a hundredth of the operand at most.
    constexpr int kUnits = 64;
    constexpr double kWorthIt = 0.9;
    if (bytesPerSecond.size() < 3) return {};  // two nodes send the same whatever they own
    contributes.resize(bytesPerSecond.size(), true);
    std::vector<Owner> owners;
    for (std::size_t node = 0; node < bytesPerSecond.size(); ++node) {
        if (bytesPerSecond[node] <= 0) return {};
        owners.push_back({bytesPerSecond[node], contributes[node]});
    }
    if (contributorsOf(owners) < 2) return {};
    const WaterFill fill = waterFill(owners);
    const std::vector<int> equal = equalCards(contributes);
    if (fill.secondsPerByte > kWorthIt * secondsFor(owners, equal)) return {};
    return inUnits(fill.shares, kUnits);
}

}  // namespace isthmus
