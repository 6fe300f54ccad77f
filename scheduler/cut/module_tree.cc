#include "scheduler/cut/module_tree.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "scheduler/cut/chain.hpp"
#include "scheduler/cut/dhondt.hpp"

namespace isthmus::scheduler {

namespace {

std::size_t at(int index) {
    return static_cast<std::size_t>(index);
}

/// Devices first to end - 1.
struct Devices {
    int first = 0;
    int end = 0;

    int number() const { return end - first; }
};

/// Modules that follow each other and are handed their devices together.
struct Run {
    std::vector<int> modules;
    Devices devices;
};

class Partition {
public:
    Partition(const ModuleTree& tree, int devices)
        : tree_(tree), deviceOf_(tree.modules.size(), 0) {
        waiting_.push_back({{0}, {0, devices}});
    }

    Result<std::vector<int>> run() {
        while (!waiting_.empty()) {
            const Run run = std::move(waiting_.back());
            waiting_.pop_back();
            if (run.devices.number() == 1) {
                for (const int module : run.modules) assignAll(module, run.devices.first);
                continue;
            }
            ISTHMUS_TRY(run.modules.size() == 1 ? openModule(run) : cutRun(run));
        }
        return std::move(deviceOf_);
    }

private:
    void assignAll(int module, int device) {
        deviceOf_[at(module)] = device;
        for (const int child : tree_.modules[at(module)].children) assignAll(child, device);
    }

    /// The module runs on the first of its devices; its children share all of them.
    Status openModule(const Run& run) {
        const int module = run.modules.front();
        deviceOf_[at(module)] = run.devices.first;
        const std::vector<int>& children = tree_.modules[at(module)].children;
        return children.empty() ? Status() : cutRun({children, run.devices});
    }

    Status cutRun(const Run& run) {
        ChainProblem chain;
        for (const int module : run.modules) {
            chain.seconds.push_back(tree_.modules[at(module)].cost);
        }
        const int most = static_cast<int>(run.modules.size());
        chain.stages = std::min(run.devices.number(), most);
        if (most == 1) {
            waiting_.push_back(run);
            return {};
        }
        const Result<ChainCut> cut = fastestCut(chain);
        if (!cut.ok()) return cut.status();
        deal(run, cut->firstLayers);
        return {};
    }

    void deal(const Run& run, const std::vector<int>& firsts) {
        std::vector<double> costs;
        std::vector<std::vector<int>> parts;
        for (std::size_t part = 0; part < firsts.size(); ++part) {
            const int end =
                part + 1 < firsts.size() ? firsts[part + 1] : static_cast<int>(run.modules.size());
            parts.emplace_back(run.modules.begin() + firsts[part], run.modules.begin() + end);
            costs.push_back(std::accumulate(
                parts.back().begin(), parts.back().end(), 0.0,
                [&](double sum, int module) { return sum + tree_.modules[at(module)].cost; }));
        }
        const std::vector<int> seats = dhondtSeats(costs, run.devices.number());
        int next = run.devices.first;
        for (std::size_t part = 0; part < parts.size(); ++part) {
            const int seated = seats[part];
            const Devices devices = seated > 0 ? Devices{next, next + seated}
                                               : Devices{run.devices.first, run.devices.first + 1};
            next += seated;
            waiting_.push_back({std::move(parts[part]), devices});
        }
    }

    const ModuleTree& tree_;
    std::vector<int> deviceOf_;
    std::vector<Run> waiting_;
};

}  // namespace

std::vector<int> dhondtSeats(const std::vector<double>& costs, int seats) {
    std::vector<int> given(costs.size(), 0);
    for (int seat = 0; seat < seats && !costs.empty(); ++seat) {
        std::size_t best = 0;
        for (std::size_t part = 1; part < costs.size(); ++part) {
            // cost / (seats + 1) without the division: equal costs are exactly equal.
            if (costs[part] * (given[best] + 1) > costs[best] * (given[part] + 1)) best = part;
        }
        ++given[best];
    }
    return given;
}

ModuleTree treeOf(const Model& model, double memoryWeight) {
    ModuleTree tree;
    tree.modules.push_back({model.name, 0, {}});
    std::map<std::string, int> byName;
    const auto allParameters = static_cast<double>(std::max<std::int64_t>(model.parameters(), 1));
    const auto allFlops = static_cast<double>(std::max<std::int64_t>(model.forwardFlops(), 1));
    for (const Layer& layer : model.layers) {
        const auto parameters = static_cast<double>(layer.parameters + layer.expertParameters);
        const double cost = memoryWeight * parameters / allParameters +
                            (1 - memoryWeight) * static_cast<double>(layer.forwardFlops) / allFlops;
        int parent = 0;
        tree.modules[0].cost += cost;
        for (std::size_t dot = 0; dot != std::string::npos;) {
            dot = layer.name.find('.', dot + 1);
            const std::string name = layer.name.substr(0, dot);
            const auto [known, isNew] = byName.emplace(name, static_cast<int>(tree.modules.size()));
            if (isNew) {
                tree.modules.push_back({name, 0, {}});
                tree.modules[at(parent)].children.push_back(known->second);
            }
            parent = known->second;
            tree.modules[at(parent)].cost += cost;
        }
    }
    return tree;
}

Result<std::vector<int>> partitionTree(const ModuleTree& tree, int devices) {
    if (devices < 1) return Status::invalidArgument("a tree is cut for at least one device");
    if (tree.modules.empty()) return Status::invalidArgument("a tree has at least its root");
    for (std::size_t place = 0; place < tree.modules.size(); ++place) {
        const ModuleTree::Module& module = tree.modules[place];
        bool isWrong = !std::isfinite(module.cost) || module.cost < 0;
        for (const int child : module.children) {
            isWrong = isWrong || child <= static_cast<int>(place) ||
                      child >= static_cast<int>(tree.modules.size());
        }
        if (isWrong) return Status::invalidArgument("module " + module.name + " is impossible");
    }
    return Partition(tree, devices).run();
}

}  // namespace isthmus::scheduler
