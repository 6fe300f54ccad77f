#include "tests/unit/algorithm/plan_runner.hpp"

#include <algorithm>

#include "comm/plan/operand.hpp"

namespace isthmus {

PlanRunner::PlanRunner(const std::vector<Plan>& plans, bool isInPlace, unsigned seed)
    : plans_(plans), isInPlace_(isInPlace), random_(seed) {
    for (const Plan& plan : plans) isDone_.emplace_back(plan.steps.size(), false);
}

Location PlanRunner::nameOf(const Location& location) const {
    return isInPlace_ ? Operand::of(plans_.front()).inPlace(location) : location;
}

void PlanRunner::setInput(Rank rank, int chunk, std::int64_t value) {
    memory_[nameOf({rank, Buffer::kInput, chunk})] = {value, 0, {rank}};
}

std::int64_t PlanRunner::output(Rank rank, int chunk) const {
    return read({rank, Buffer::kOutput, chunk}).sum;
}

int PlanRunner::scaled(Rank rank, int chunk) const {
    return read({rank, Buffer::kOutput, chunk}).scaled;
}

std::vector<Rank> PlanRunner::foldOf(Rank rank, int chunk) const {
    return read({rank, Buffer::kOutput, chunk}).fold;
}

PlanRunner::Value PlanRunner::read(const Location& location) const {
    const auto found = memory_.find(nameOf(location));
    return found == memory_.end() ? Value{} : found->second;
}

std::vector<PlanRunner::Value> PlanRunner::readAll(const Slice& slice) const {
    std::vector<Value> values;
    for (const Location& location : slice) values.push_back(read(location));
    return values;
}

void PlanRunner::writeAll(const Slice& slice, const std::vector<Value>& values) {
    for (std::size_t i = 0; i < slice.size(); ++i) memory_[nameOf(slice[i])] = values[i];
}

bool PlanRunner::isReady(Rank rank, int step) const {
    const auto& done = isDone_[static_cast<std::size_t>(rank)];
    const Step& wanted =
        plans_[static_cast<std::size_t>(rank)].steps[static_cast<std::size_t>(step)];
    const auto isOver = [&](int before) { return done[static_cast<std::size_t>(before)]; };
    if (!std::all_of(wanted.after.begin(), wanted.after.end(), isOver)) return false;
    if (wanted.verb == Verb::kWait) {
        return std::all_of(wanted.peers.begin(), wanted.peers.end(), [&](Rank peer) {
            const auto raised = raised_.find({peer, rank});
            return raised != raised_.end() && raised->second > 0;
        });
    }
    if (wanted.verb != Verb::kRecv) return true;
    const auto lane = lanes_.find({wanted.peers[0], rank, wanted.channel});
    return lane != lanes_.end() &&
           lane->second.arrived < static_cast<int>(lane->second.sent.size());
}

/// The first step not done of each verb that counts by program order, and any other step.
std::vector<int> PlanRunner::readySteps(Rank rank) const {
    const Plan& plan = plans_[static_cast<std::size_t>(rank)];
    std::vector<int> ready;
    std::map<std::vector<int>, bool> isBusy;  // verb, peer: an earlier step of it is not done
    for (int step = 0; step < static_cast<int>(plan.steps.size()); ++step) {
        const Step& next = plan.steps[static_cast<std::size_t>(step)];
        if (isDone_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(step)]) continue;
        bool isFirst = true;
        for (const Rank peer : next.peers) {
            bool& busy = isBusy[{static_cast<int>(next.verb), peer}];
            isFirst = isFirst && !busy;
            busy = true;
        }
        if (isFirst && isReady(rank, step)) ready.push_back(step);
    }
    return ready;
}

void PlanRunner::perform(Rank rank, const Step& step) {
    switch (step.verb) {
    case Verb::kSend:
        lanes_[{rank, step.peers[0], step.channel}].sent.push_back(readAll(step.sources[0]));
        return;
    case Verb::kRecv: {
        Lane& lane = lanes_[{step.peers[0], rank, step.channel}];
        writeAll(step.target, lane.sent[static_cast<std::size_t>(lane.arrived++)]);
        return;
    }
    case Verb::kSignal:
        for (const Rank peer : step.peers) ++raised_[{rank, peer}];
        return;
    case Verb::kWait:
        for (const Rank peer : step.peers) --raised_[{peer, rank}];
        return;
    case Verb::kCopy:
    case Verb::kReduce:
        break;
    }
    std::vector<Value> result = readAll(step.sources[0]);
    for (std::size_t source = 1; source < step.sources.size(); ++source) {
        const std::vector<Value> terms = readAll(step.sources[source]);
        for (std::size_t i = 0; i < result.size(); ++i) {
            result[i].sum += terms[i].sum;
            result[i].scaled += terms[i].scaled;
            if (terms[i].fold.size() != 1) result[i].fold.clear();
            if (!result[i].fold.empty()) result[i].fold.push_back(terms[i].fold.front());
        }
    }
    for (Value& value : result) value.scaled += step.completes ? 1 : 0;
    writeAll(step.target, result);
}

bool PlanRunner::run() {
    std::size_t left = 0;
    for (const Plan& plan : plans_) left += plan.steps.size();
    while (left > 0) {
        std::vector<std::pair<Rank, int>> ready;
        for (Rank rank = 0; rank < static_cast<Rank>(plans_.size()); ++rank) {
            for (const int step : readySteps(rank)) ready.emplace_back(rank, step);
        }
        if (ready.empty()) return false;
        const auto [rank, step] = ready[random_() % ready.size()];
        const auto at = static_cast<std::size_t>(rank);
        perform(rank, plans_[at].steps[static_cast<std::size_t>(step)]);
        isDone_[at][static_cast<std::size_t>(step)] = true;
        --left;
    }
    return true;
}

}  // namespace isthmus
