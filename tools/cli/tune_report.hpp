#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <isthmus/types.hpp>

#include "comm/selector/rules.hpp"

namespace isthmus::cli {

/// What was measured of one collective at one size.
struct TunedPoint {
    Collective collective = Collective::kBarrier;
    std::uint64_t bytes = 0;                              ///< the whole operand
    std::string chosen;                                   ///< with the job's ISTHMUS_ALGORITHM
    std::vector<std::pair<std::string, double>> seconds;  ///< by algorithm, best first
    std::string alone = chosen;                           ///< by the selector without rules

    double secondsOf(const std::string& algorithm) const;
    double chosenSeconds() const { return secondsOf(chosen); }
    const std::pair<std::string, double>& best() const { return seconds.front(); }
    /// Time of the choice over that of the best; 1: nothing is faster.
    double ratio() const { return chosenSeconds() / best().second; }
};

/// A choice is as good as the best when it takes at most this many times its time: what repeated
/// measurements of one algorithm differ by on a machine with other guests.
inline constexpr double kGoodRatio = 1.15;

std::string tuneHead();
std::string tuneRow(const TunedPoint& point);
/// How many choices were good, and which one was the worst.
std::string tuneFoot(const std::vector<TunedPoint>& points);

/// A rule for each run of sizes at which the selector's own choice is not good.
/// A size stands for all above the next smaller measured one. Points of a collective: by size.
AlgorithmRules rulesFrom(const std::vector<TunedPoint>& points, const std::vector<int>& nodes);

/// The file that ISTHMUS_ALGORITHM reads, with all times measured beside the rules. `command`: how
/// it was made.
std::string tuneDocument(const std::vector<TunedPoint>& points, const std::vector<int>& nodes,
                         const std::string& command);

}  // namespace isthmus::cli
