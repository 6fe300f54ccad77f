#pragma once

#include <limits>
#include <vector>

#include "scheduler/cut/chain.hpp"

namespace isthmus::scheduler {

inline constexpr double kImpossible = std::numeric_limits<double>::infinity();

/// Sums over neighbours of a chain, each in constant time.
class ChainCosts {
public:
    explicit ChainCosts(const ChainProblem& problem);

    int layers() const { return layers_; }

    /// Layers first to end - 1 on a device of that speed: what its computing takes.
    double compute(int first, int end, double speed) const {
        return (seconds_[place(end)] - seconds_[place(first)]) / speed;
    }
    /// The message that the stage ending there sends; nothing after the last layer.
    double link(int end) const {
        return links_.empty() || end == layers_ ? 0 : links_[place(end - 1)];
    }
    bool fits(int first, int end, std::int64_t capacity, std::int64_t inFlight) const;

    /// By stage, with what is not said filled in.
    double speed(int stage) const { return speed_.empty() ? 1 : speed_[place(stage)]; }
    std::int64_t capacity(int stage) const {
        return capacity_.empty() ? INT64_MAX : capacity_[place(stage)];
    }
    std::int64_t inFlight(int stage) const {
        return inFlight_.empty() ? 1 : inFlight_[place(stage)];
    }
    bool stageFits(int first, int end, int stage) const {
        return fits(first, end, capacity(stage), inFlight(stage));
    }
    /// What the stage adds to the pace of a pipeline: computing and sending overlap.
    double pace(int first, int end, int stage) const {
        const double computing = compute(first, end, speed(stage));
        return computing > link(end) ? computing : link(end);
    }

private:
    static std::size_t place(int index) { return static_cast<std::size_t>(index); }

    int layers_;
    std::vector<double> seconds_;  ///< entry l: of the layers before l
    std::vector<std::int64_t> state_;
    std::vector<std::int64_t> kept_;
    const std::vector<double>& links_;
    const std::vector<double>& speed_;
    const std::vector<std::int64_t>& capacity_;
    const std::vector<std::int64_t>& inFlight_;
};

Status checkProblem(const ChainProblem& problem);

/// Sums and slowest stage of a cut that is known.
ChainCut described(const ChainCosts& costs, std::vector<int> firstLayers);

/// Why nothing fits, from the even cut.
Status nothingFits(const ChainProblem& problem, const ChainCosts& costs);

}  // namespace isthmus::scheduler
