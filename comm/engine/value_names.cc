#include <algorithm>
#include <memory_resource>
#include <optional>
#include <unordered_map>

#include "comm/engine/compiled_plan.hpp"
#include "comm/plan/operand.hpp"

namespace isthmus {

namespace {

// Values of one rank's plan, in classes of those that hold the same chunk.
class Values {
public:
    void reserve(std::size_t values) {
        parent_.reserve(values);
        names_.reserve(values);
    }
    int make(std::optional<ChunkName> name) {
        parent_.push_back(static_cast<int>(parent_.size()));
        names_.push_back(name);
        return parent_.back();
    }
    int find(int value) {
        while (parent_[value] != value) value = parent_[value] = parent_[parent_[value]];
        return value;
    }
    void unite(int a, int b) {
        a = find(a);
        b = find(b);
        if (a == b) return;
        if (!names_[a]) names_[a] = names_[b];
        parent_[b] = a;
    }
    std::optional<ChunkName> nameOf(int value) { return names_[find(value)]; }

private:
    std::vector<int> parent_;
    std::vector<std::optional<ChunkName>> names_;
};

class Namer {
public:
    explicit Namer(CompiledPlan& compiled)
        : compiled_(compiled), operand_(Operand::of(compiled.plan)) {
        const std::size_t locations = compiled.plan.locations();
        values_.reserve(locations);
        holds_.reserve(locations);
        touched_.reserve(locations);
    }

    void run() {
        const auto& steps = compiled_.plan.steps;
        for (const Step& step : steps) follow(step);
        auto value = touched_.cbegin();
        for (std::size_t i = 0; i < steps.size(); ++i) tell(steps[i], compiled_.nodes[i], value);
    }

private:
    using Cursor = std::vector<int>::const_iterator;

    static bool isScratch(const Location& location) {
        return location.buffer == Buffer::kScratch || location.buffer == Buffer::kShared;
    }

    int valueAt(const Location& location) {
        if (!isScratch(location)) return values_.make(operand_.meaning(location));
        const auto [it, isNew] = holds_.try_emplace(location, 0);
        if (isNew) it->second = values_.make(std::nullopt);
        return it->second;
    }

    int written(const Location& location) {
        if (!isScratch(location)) return values_.make(operand_.meaning(location));
        return holds_[location] = values_.make(std::nullopt);
    }

    void follow(const Step& step) {
        if (step.verb == Verb::kWait) {  // peers may have filled their slots anew
            std::erase_if(holds_,
                          [&](const auto& entry) { return entry.first.rank != compiled_.plan.me; });
            return;
        }
        std::size_t source = touched_.size();
        for (const Slice& slice : step.sources) {
            for (const Location& location : slice) touched_.push_back(valueAt(location));
        }
        const std::size_t target = touched_.size();
        for (const Location& location : step.target) touched_.push_back(written(location));
        for (const Slice& slice : step.sources) {
            const std::size_t both = std::min(slice.size(), step.target.size());
            for (std::size_t at = 0; at < both; ++at)
                values_.unite(touched_[target + at], touched_[source + at]);
            source += slice.size();
        }
    }

    ChunkName nameOf(const Location& location, int value) {
        if (const auto name = values_.nameOf(value)) return *name;
        const Plan& plan = compiled_.plan;
        return (location.buffer == Buffer::kShared ? plan.shared : plan.scratch)[location.chunk];
    }

    std::vector<ChunkName> namesOf(const Slice& slice, Cursor& value) {
        std::vector<ChunkName> names;
        names.reserve(slice.size());
        for (const Location& location : slice) names.push_back(nameOf(location, *value++));
        return names;
    }

    /// Takes the step's values in the order in which follow() found them.
    void tell(const Step& step, CompiledPlan::Node& node, Cursor& value) {
        node.sourceNames.reserve(step.sources.size());
        for (const Slice& slice : step.sources) node.sourceNames.push_back(namesOf(slice, value));
        node.targetNames = namesOf(step.target, value);
    }

    CompiledPlan& compiled_;
    Operand operand_;
    Values values_;
    std::pmr::monotonic_buffer_resource memory_;
    std::pmr::unordered_map<Location, int, LocationHash> holds_{&memory_};
    std::vector<int> touched_;  // values of each step's sources, then of its target
};

}  // namespace

void nameValues(CompiledPlan& compiled) {
    Namer(compiled).run();
}

}  // namespace isthmus
