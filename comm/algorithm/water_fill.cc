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

std::vector<int> unequalShares(std::span<const double> bytesPerSecond) {
    // Parts of a 64th are fine enough: a card is off by a hundredth of the operand at most.
    constexpr int kUnits = 64;
    constexpr double kWorthIt = 0.9;
    if (bytesPerSecond.size() < 3) return {};  // two nodes send the same whatever they own
    std::vector<Owner> owners;
    for (const double rate : bytesPerSecond) {
        if (rate <= 0) return {};
        owners.push_back({rate, true});
    }
    const WaterFill fill = waterFill(owners);
    const double nodes = static_cast<double>(owners.size());
    const double slowest = *std::min_element(bytesPerSecond.begin(), bytesPerSecond.end());
    const double equalSeconds = 2 * (nodes - 1) / nodes / slowest;
    if (fill.secondsPerByte > kWorthIt * equalSeconds) return {};
    return inUnits(fill.shares, kUnits);
}

}  // namespace isthmus
