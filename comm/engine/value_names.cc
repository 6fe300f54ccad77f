#include <map>
#include <numeric>
#include <optional>

#include "comm/engine/compiled_plan.hpp"
#include "comm/plan/operand.hpp"

namespace isthmus {

namespace {

// Values of one rank's plan, in classes of those that hold the same chunk.
class Values {
public:
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
        : compiled_(compiled), operand_(Operand::of(compiled.plan)) {}

    void run() {
        const auto& steps = compiled_.plan.steps;
        targets_.resize(steps.size());
        sources_.resize(steps.size());
        for (std::size_t i = 0; i < steps.size(); ++i) follow(steps[i], i);
        for (std::size_t i = 0; i < steps.size(); ++i) tell(steps[i], i);
    }

private:
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

    void follow(const Step& step, std::size_t index) {
        if (step.verb == Verb::kWait) {  // peers may have filled their slots anew
            std::erase_if(holds_,
                          [&](const auto& entry) { return entry.first.rank != compiled_.plan.me; });
            return;
        }
        for (const Slice& source : step.sources) {
            sources_[index].emplace_back();
            for (const Location& location : source)
                sources_[index].back().push_back(valueAt(location));
        }
        for (const Location& location : step.target) targets_[index].push_back(written(location));
        for (const auto& source : sources_[index]) {
            for (std::size_t at = 0; at < source.size() && at < targets_[index].size(); ++at) {
                values_.unite(targets_[index][at], source[at]);
            }
        }
    }

    ChunkName nameOf(const Location& location, int value) {
        if (const auto name = values_.nameOf(value)) return *name;
        const Plan& plan = compiled_.plan;
        return (location.buffer == Buffer::kShared ? plan.shared : plan.scratch)[location.chunk];
    }

    void tell(const Step& step, std::size_t index) {
        CompiledPlan::Node& node = compiled_.nodes[index];
        for (std::size_t at = 0; at < step.target.size(); ++at) {
            node.targetNames.push_back(nameOf(step.target[at], targets_[index][at]));
        }
        for (std::size_t i = 0; i < step.sources.size(); ++i) {
            node.sourceNames.emplace_back();
            for (std::size_t at = 0; at < step.sources[i].size(); ++at) {
                node.sourceNames.back().push_back(
                    nameOf(step.sources[i][at], sources_[index][i][at]));
            }
        }
    }

    CompiledPlan& compiled_;
    Operand operand_;
    Values values_;
    std::map<Location, int> holds_;
    std::vector<std::vector<int>> targets_;
    std::vector<std::vector<std::vector<int>>> sources_;
};

}  // namespace

void nameValues(CompiledPlan& compiled) {
    Namer(compiled).run();
}

}  // namespace isthmus
