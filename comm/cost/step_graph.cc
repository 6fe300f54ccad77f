#include "comm/cost/step_graph.hpp"

#include <algorithm>
#include <string>
#include <tuple>

#include "comm/cost/plan_bytes.hpp"

namespace isthmus {
namespace {

const auto kLane = [](const auto& end) { return std::tie(end.from, end.to, end.channel); };
const auto kInOrder = [](const auto& one, const auto& other) {
    return std::tie(one.from, one.to, one.channel, one.step) <
           std::tie(other.from, other.to, other.channel, other.step);
};

}  // namespace

StepGraph::StepGraph(int ranks, Symmetry symmetry)
    : ranks_(ranks),
      symmetry_(std::move(symmetry)),
      ranksSteps_(static_cast<std::size_t>(symmetry_.isFolded() ? symmetry_.unitRanks : ranks)) {}

Result<StepGraph> StepGraph::of(std::span<const Plan> plans) {
    StepGraph graph(static_cast<int>(plans.size()), {});
    for (const Plan& plan : plans) graph.add(plan);
    ISTHMUS_TRY(graph.connect());
    return graph;
}

std::size_t StepGraph::steps() const {
    std::size_t all = 0;
    for (const RankSteps& rank : ranksSteps_) all += rank.steps.size();
    return all;
}

std::span<const int> StepGraph::after(Rank rank, int step) const {
    const RankSteps& mine = of(rank);
    const auto index = static_cast<std::size_t>(step);
    return {mine.next.data() + mine.firstNext[index], mine.next.data() + mine.firstNext[index + 1]};
}

std::span<const Wake> StepGraph::wakes(Rank rank, int step) const {
    const RankSteps& mine = of(rank);
    const auto index = static_cast<std::size_t>(step);
    return {mine.wakes.data() + mine.firstWake[index],
            mine.wakes.data() + mine.firstWake[index + 1]};
}

void StepGraph::add(const Plan& plan) {
    std::vector<GraphStep>& steps = of(plan.me).steps;
    steps.reserve(plan.steps.size());
    for (const Step& step : plan.steps) {
        GraphStep& mine = steps.emplace_back();
        mine.verb = step.verb;
        mine.needs = static_cast<int>(step.after.size());
        mine.share = shareOfBlock(plan, step);
        note(plan, step, static_cast<int>(steps.size()) - 1);
    }
    linkOwn(plan);
}

void StepGraph::note(const Plan& plan, const Step& step, int index) {
    for (const Rank peer : step.peers) {
        const bool isFromMe = step.verb == Verb::kSend || step.verb == Verb::kSignal;
        End end{peer, plan.me, step.channel, index, plan.me, peer};
        if (isFromMe) {
            end.from = symmetry_.seenFrom(plan.me, peer);
            end.to = symmetry_.standIn(peer);
        }
        switch (step.verb) {
        case Verb::kSend:
            sends_.push_back(end);
            break;
        case Verb::kRecv:
            recvs_.push_back(end);
            break;
        case Verb::kSignal:
            signals_.push_back(end);
            break;
        case Verb::kWait:
            waits_.push_back(end);
            break;
        case Verb::kCopy:
        case Verb::kReduce:
            break;
        }
        of(plan.me).steps.back().peer = peer;
    }
}

void StepGraph::linkOwn(const Plan& plan) {
    RankSteps& mine = of(plan.me);
    mine.firstNext.assign(plan.steps.size() + 1, 0);
    for (const Step& step : plan.steps) {
        for (const int before : step.after) ++mine.firstNext[static_cast<std::size_t>(before) + 1];
    }
    for (std::size_t step = 1; step < mine.firstNext.size(); ++step)
        mine.firstNext[step] += mine.firstNext[step - 1];
    mine.next.resize(mine.firstNext.back());
    std::vector<std::uint32_t> place(mine.firstNext);
    for (std::size_t index = 0; index < plan.steps.size(); ++index) {
        for (const int before : plan.steps[index].after) {
            mine.next[place[static_cast<std::size_t>(before)]++] = static_cast<int>(index);
        }
    }
}

Status StepGraph::connect() {
    ISTHMUS_TRY(connectMessages());
    ISTHMUS_TRY(connectSignals());
    sends_ = recvs_ = signals_ = waits_ = {};
    return {};
}

// The n-th send from a to b on a channel meets the n-th recv.
Status StepGraph::connectMessages() {
    std::sort(sends_.begin(), sends_.end(), kInOrder);
    std::sort(recvs_.begin(), recvs_.end(), kInOrder);
    const auto [send, recv] =
        std::mismatch(sends_.begin(), sends_.end(), recvs_.begin(), recvs_.end(),
                      [](const End& one, const End& other) { return kLane(one) == kLane(other); });
    if (send != sends_.end() || recv != recvs_.end()) {
        const bool isUnreceived =
            send != sends_.end() && (recv == recvs_.end() || kLane(*send) < kLane(*recv));
        const End& alone = isUnreceived ? *send : *recv;
        return Status::invalidArgument(
            "a message from rank " + std::to_string(alone.from) + " to rank " +
            std::to_string(alone.to) + " is " +
            (isUnreceived ? "sent and never received" : "received and never sent"));
    }
    for (std::size_t nth = 0; nth < sends_.size(); ++nth) {
        step(sends_[nth]).partner = recvs_[nth].step;
        step(recvs_[nth]).partner = sends_[nth].step;
    }
    return {};
}

// The n-th wait for a signal meets the n-th signal; there may be more of these.
Status StepGraph::connectSignals() {
    std::sort(signals_.begin(), signals_.end(), kInOrder);
    std::sort(waits_.begin(), waits_.end(), kInOrder);
    std::vector<std::pair<End, int>> met;  // signal, wait step
    auto signal = signals_.begin();
    const End* before = nullptr;
    for (const End& wait : waits_) {
        if (before == nullptr || kLane(*before) != kLane(wait))
            signal = std::find_if(signal, signals_.end(),
                                  [&](const End& end) { return kLane(end) >= kLane(wait); });
        if (signal == signals_.end() || kLane(*signal) != kLane(wait)) {
            return Status::invalidArgument("rank " + std::to_string(wait.to) +
                                           " waits for a signal that rank " +
                                           std::to_string(wait.from) + " never gives");
        }
        step(wait).needs += 1;
        met.emplace_back(*signal++, wait.step);
        before = &wait;
    }
    std::stable_sort(met.begin(), met.end(), [](const auto& one, const auto& other) {
        return std::tie(one.first.owner, one.first.step) <
               std::tie(other.first.owner, other.first.step);
    });
    for (RankSteps& rank : ranksSteps_) rank.firstWake.assign(rank.steps.size() + 1, 0);
    for (const auto& [end, wait] : met) {
        of(end.owner).wakes.push_back({end.peer, wait});
        ++of(end.owner).firstWake[static_cast<std::size_t>(end.step) + 1];
    }
    for (RankSteps& rank : ranksSteps_) {
        for (std::size_t step = 1; step < rank.firstWake.size(); ++step)
            rank.firstWake[step] += rank.firstWake[step - 1];
    }
    return {};
}

}  // namespace isthmus
