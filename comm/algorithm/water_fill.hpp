#pragma once

#include <span>
#include <vector>

namespace isthmus {

/// A node that adds up a share of an all-reduce for all: what its card carries each way, and
/// whether it has a summand of its own or only helps.
struct Owner {
    double bytesPerSecond = 0;
    bool contributes = true;
};

/// What part of the operand each owner takes (together 1), and the seconds that the slowest card
/// needs for each byte of the operand.
struct WaterFill {
    std::vector<double> shares;
    double secondsPerByte = 0;
};

/// Shares that let the slowest card finish soonest. A contributor of n with share w sends 1 - w to
/// other owners and n - 1 times w back: 1 + (n - 2) w of the operand, and receives as much. A
/// helper sends and receives n w. With two contributors their shares do not matter: what helpers
/// leave is halved. Needs a contributor, and cards that carry something. Source: Jiang et al.,
/// BytePS, OSDI 2020, Theorem 1, for equal cards; unequal ones: own.
WaterFill waterFill(std::span<const Owner> owners);

/// The shares in whole units, `units` in all: rounded down, the units left over go to the largest
/// rests.
std::vector<int> inUnits(std::span<const double> shares, int units);

/// The shares for equal cards as small whole numbers, by the theorem: of n contributors and k that
/// only help, k < n, each of the former n - k and each of the latter 2 (n - 1); with k >= n helpers
/// own everything, with one contributor that one does. Needs a contributor.
std::vector<int> equalCards(const std::vector<bool>& contributes);

/// What part of an all-reduce each node should own when their cards carry so much each way: in
/// units that sum up to a small number; empty where equal parts serve as well (within a tenth), or
/// where a card is not known (0). `contributes`: by node; all when left out.
std::vector<int> unequalShares(std::span<const double> bytesPerSecond,
                               std::vector<bool> contributes = {});

}  // namespace isthmus
