#include "comm/engine/compiled_plan.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace isthmus {

namespace {

// A step that copies a reduce's whole result, once or to several places, and depends on nothing
// else: the reduce can store to all of them in one pass.
bool isCopyOf(const Step& copy, const Step& reduce, int reduceIndex) {
    if (copy.verb != Verb::kCopy || copy.completes || copy.after != std::vector<int>{reduceIndex})
        return false;
    const Slice& from = copy.sources.front();
    const std::size_t width = reduce.target.size();
    if (width == 0 || from.size() % width != 0) return false;
    for (std::size_t i = 0; i < from.size(); ++i) {
        if (!(from[i] == reduce.target[i % width])) return false;
    }
    return true;
}

void fuse(CompiledPlan& compiled) {
    const auto& steps = compiled.plan.steps;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        if (steps[i].verb != Verb::kReduce) continue;
        CompiledPlan::Node& node = compiled.nodes[i];
        for (const int next : node.next) {
            if (!isCopyOf(steps[next], steps[i], static_cast<int>(i))) continue;
            const Slice& places = steps[next].target;
            const auto width = static_cast<std::ptrdiff_t>(steps[i].target.size());
            for (auto place = places.begin(); place != places.end(); place += width)
                node.also.emplace_back(place, place + width);
            compiled.nodes[next].isFused = true;
        }
    }
}

bool isHeavy(const Step& step) {
    return step.verb == Verb::kCopy || step.verb == Verb::kReduce;
}

int onlyMeeting(const CompiledPlan& compiled, int nodeRanks) {
    const Plan& plan = compiled.plan;
    const auto& steps = plan.steps;
    if (compiled.usesMessages || !plan.inPlaceSafe || plan.ranks != nodeRanks) return -1;
    if (!plan.sharedOutlivesCall && std::any_of(steps.begin(), steps.end(), isHeavy)) return -1;
    const auto at = std::find_if_not(steps.begin(), steps.end(), isHeavy);
    const auto rest = steps.end() - at;
    const auto everybody = static_cast<std::size_t>(nodeRanks - 1);
    const bool isMeeting = rest >= 2 && at[0].verb == Verb::kSignal && at[1].verb == Verb::kWait &&
                           at[0].peers.size() == everybody && at[1].peers.size() == everybody &&
                           std::all_of(at + 2, steps.end(), isHeavy);
    return isMeeting ? static_cast<int>(at - steps.begin()) : -1;
}

}  // namespace

CompiledPlan CompiledPlan::of(Plan plan, const std::vector<int>& positionInNode, int nodeRanks) {
    CompiledPlan compiled;
    compiled.nodes.resize(plan.steps.size());
    compiled.signalsTo.assign(nodeRanks, 0);
    compiled.waitsOn.assign(nodeRanks, 0);
    std::map<std::tuple<Rank, int, bool>, std::uint32_t> messages;
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        const Step& step = plan.steps[i];
        Node& node = compiled.nodes[i];
        node.waitsFor = static_cast<std::uint32_t>(step.after.size());
        if (step.after.empty()) compiled.first.push_back(static_cast<int>(i));
        for (const int before : step.after)
            compiled.nodes[before].next.push_back(static_cast<int>(i));
        const bool isSend = step.verb == Verb::kSend || step.verb == Verb::kSignal;
        if (step.verb == Verb::kSend || step.verb == Verb::kRecv) {
            node.message = messages[{step.peers.front(), step.channel, isSend}]++;
            compiled.usesMessages = true;
        }
        if (step.verb != Verb::kSignal && step.verb != Verb::kWait) continue;
        for (const Rank rank : step.peers) {
            const int position = positionInNode[rank];
            std::uint32_t& count = position < 0 ? messages[{rank, kSignalChannel, isSend}]
                                   : isSend     ? compiled.signalsTo[position]
                                                : compiled.waitsOn[position];
            node.peers.push_back({rank, position, count++});
            compiled.usesMessages |= position < 0;
        }
    }
    compiled.plan = std::move(plan);
    nameValues(compiled);
    fuse(compiled);
    compiled.positionOf = positionInNode;
    // A rank whose input is read by one other does no more than that, and its reader does.
    if (compiled.plan.mapping != Mapping::kRead)
        compiled.meetsAt = onlyMeeting(compiled, nodeRanks);
    return compiled;
}

}  // namespace isthmus
