#include <algorithm>

#include "scheduler/cut/chain.hpp"
#include "scheduler/cut/chain_costs.hpp"

namespace isthmus::scheduler {

namespace {

std::size_t at(int index) {
    return static_cast<std::size_t>(index);
}

/// Dynamic program over (devices of each kind that are used, layers that are placed). The number
/// of used devices is the stage.
class KindProgram {
public:
    KindProgram(const ChainProblem& problem, const ChainCosts& costs,
                const std::vector<DeviceKind>& kinds)
        : problem_(problem), costs_(costs), kinds_(kinds) {
        for (const DeviceKind& kind : kinds) {
            steps_.push_back(counts_);
            counts_ *= kind.devices + 1;
        }
        const std::size_t states = at(counts_) * at(costs.layers() + 1);
        value_.assign(states, kImpossible);
        begin_.assign(states, -1);
        kind_.assign(states, -1);
        value_[0] = 0;
    }

    bool run() {
        // Counts in rising order: a device less of one kind is a smaller count.
        for (int count = 1; count < counts_; ++count) {
            const int stage = usedIn(count) - 1;
            const int lastEnd = costs_.layers() - (problem_.stages - 1 - stage);
            for (int end = stage + 1; end <= lastEnd; ++end) {
                for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
                    extend(count, stage, end, kind);
                }
            }
        }
        return value_[index(counts_ - 1, costs_.layers())] != kImpossible;
    }

    KindCut answer() const {
        KindCut answer;
        answer.kinds.resize(at(problem_.stages));
        std::vector<int> firstLayers(at(problem_.stages));
        int count = counts_ - 1;
        int end = costs_.layers();
        for (int stage = problem_.stages; stage-- > 0;) {
            const std::size_t state = index(count, end);
            answer.kinds[at(stage)] = kind_[state];
            firstLayers[at(stage)] = begin_[state];
            end = begin_[state];
            count -= steps_[at(kind_[state])];
        }
        ChainProblem dealt = problem_;
        dealt.speed.clear();
        for (const int kind : answer.kinds) dealt.speed.push_back(kinds_[at(kind)].speed);
        answer.cut = described(ChainCosts(dealt), std::move(firstLayers));
        return answer;
    }

private:
    std::size_t index(int count, int end) const {
        return at(count) * at(costs_.layers() + 1) + at(end);
    }
    int usedOf(int count, std::size_t kind) const {
        return count / steps_[kind] % (kinds_[kind].devices + 1);
    }
    int usedIn(int count) const {
        int used = 0;
        for (std::size_t kind = 0; kind < kinds_.size(); ++kind) used += usedOf(count, kind);
        return used;
    }

    /// The last stage on a device of `kind`.
    void extend(int count, int stage, int end, std::size_t kind) {
        if (usedOf(count, kind) == 0) return;
        const std::size_t state = index(count, end);
        const DeviceKind& device = kinds_[kind];
        const std::int64_t capacity = device.capacity > 0 ? device.capacity : INT64_MAX;
        for (int first = end - 1; first >= stage; --first) {
            const double computing = costs_.compute(first, end, device.speed);
            if (computing >= value_[state]) break;
            if (!costs_.fits(first, end, capacity, costs_.inFlight(stage))) break;
            const double before = value_[index(count - steps_[kind], first)];
            const double value = std::max({before, computing, costs_.link(end)});
            if (value >= value_[state]) continue;
            value_[state] = value;
            begin_[state] = first;
            kind_[state] = static_cast<int>(kind);
        }
    }

    const ChainProblem& problem_;
    const ChainCosts& costs_;
    const std::vector<DeviceKind>& kinds_;
    std::vector<int> steps_;  ///< what one device of a kind adds to a count
    int counts_ = 1;
    std::vector<double> value_;
    std::vector<int> begin_;
    std::vector<int> kind_;
};

}  // namespace

Result<KindCut> fastestCut(const ChainProblem& problem, const std::vector<DeviceKind>& kinds) {
    ChainProblem chain = problem;
    chain.speed.clear();
    chain.capacity.clear();
    ISTHMUS_TRY(checkProblem(chain));
    constexpr std::int64_t kMostCounts = 1 << 20;
    std::int64_t counts = 1;
    std::int64_t devices = 0;
    for (const DeviceKind& kind : kinds) {
        if (kind.devices < 1 || !(kind.speed > 0) || kind.capacity < 0) {
            return Status::invalidArgument("a kind of device has at least one, and a speed");
        }
        devices += kind.devices;
        counts *= kind.devices + std::int64_t{1};
        if (counts > kMostCounts) return Status::resource("too many kinds of devices to try all");
    }
    if (devices != problem.stages) {
        return Status::invalidArgument(std::to_string(devices) + " devices for " +
                                       std::to_string(problem.stages) + " stages");
    }
    const ChainCosts costs(chain);
    KindProgram program(chain, costs, kinds);
    if (!program.run()) return Status::resource("no cut fits the capacities in any order");
    return program.answer();
}

}  // namespace isthmus::scheduler
