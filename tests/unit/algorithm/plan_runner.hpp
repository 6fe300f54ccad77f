#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include "comm/plan/plan.hpp"

namespace isthmus {

/// Runs the plans of all ranks on one number per chunk, one step at a time, in an order that a seed
/// chooses among those that `after`, messages and signals allow.
class PlanRunner {
public:
    PlanRunner(const std::vector<Plan>& plans, bool isInPlace, unsigned seed);

    void setInput(Rank rank, int chunk, std::int64_t value);
    /// False when it stopped with steps left.
    bool run();
    std::int64_t output(Rank rank, int chunk) const;
    /// How many reduces (or copies) marked `completes` lie behind a value: its scale.
    int scaled(Rank rank, int chunk) const;
    /// The ranks whose inputs it is the left fold of, in order; empty when it is none.
    std::vector<Rank> foldOf(Rank rank, int chunk) const;

private:
    struct Value {
        std::int64_t sum = kNothing;
        int scaled = 0;
        std::vector<Rank> fold;
    };
    static constexpr std::int64_t kNothing = -1'000'000'007;

    struct Lane {
        std::vector<std::vector<Value>> sent;
        int arrived = 0;
    };

    Location nameOf(const Location& location) const;
    Value read(const Location& location) const;
    std::vector<Value> readAll(const Slice& slice) const;
    void writeAll(const Slice& slice, const std::vector<Value>& values);
    bool isReady(Rank rank, int step) const;
    void perform(Rank rank, const Step& step);
    std::vector<int> readySteps(Rank rank) const;

    const std::vector<Plan>& plans_;
    bool isInPlace_;
    std::mt19937 random_;
    std::map<Location, Value> memory_;
    std::map<std::vector<int>, Lane> lanes_;       // from, to, channel
    std::map<std::pair<Rank, Rank>, int> raised_;  // signals not yet waited for
    std::vector<std::vector<bool>> isDone_;
};

}  // namespace isthmus
