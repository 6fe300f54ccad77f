#include "comm/cost/simulation.hpp"

#include <algorithm>
#include <string>

namespace isthmus {

Simulation::Simulation(std::span<const Plan> plans, const Layout& layout, const PlanCall& call,
                       const LinkModel& model)
    : plans_(plans),
      call_(call),
      model_(model),
      ranks_(plans.size()),
      egressFree_(layout.nodes.size(), 0),
      ingressFree_(layout.nodes.size(), 0) {
    for (std::size_t rank = 0; rank < plans.size(); ++rank) {
        nodeOf_.push_back(layout.nodeOf(static_cast<Rank>(rank)));
    }
    rackOf_.assign(layout.nodes.size(), 0);
    if (!layout.racks.empty()) rackOf_ = layout.racks.back();
    const auto racks =
        static_cast<std::size_t>(*std::max_element(rackOf_.begin(), rackOf_.end()) + 1);
    rackEgressFree_.assign(racks, 0);
    rackIngressFree_.assign(racks, 0);
    for (const std::vector<Rank>& node : layout.nodes) {
        ranksOnNode_.push_back(static_cast<double>(node.size()));
    }
}

const Step& Simulation::stepOf(Rank rank, int step) const {
    return plans_[static_cast<std::size_t>(rank)].steps[static_cast<std::size_t>(step)];
}

StepLinks& Simulation::linksOf(Rank rank, int step) {
    return stateOf(rank).links[static_cast<std::size_t>(step)];
}

Simulation::Progress& Simulation::progressOf(Rank rank, int segment) {
    return stateOf(rank).segments[static_cast<std::size_t>(segment)];
}

double Simulation::rankRate(Rank rank, double nodeRate) const {
    const auto node = static_cast<std::size_t>(nodeOf_[static_cast<std::size_t>(rank)]);
    return nodeRate / ranksOnNode_[node];
}

bool Simulation::sameNode(Rank one, Rank other) const {
    return nodeOf_[static_cast<std::size_t>(one)] == nodeOf_[static_cast<std::size_t>(other)];
}

// The n-th send from a to b on a channel meets the n-th recv; the n-th signal the n-th wait.
Status Simulation::connect() {
    using Lane = std::tuple<Rank, Rank, int>;
    std::map<Lane, std::vector<int>> sends;
    std::map<Lane, std::vector<int>> recvs;
    std::map<std::pair<Rank, Rank>, std::vector<int>> signals;
    std::map<std::pair<Rank, Rank>, std::vector<int>> waits;
    for (const Plan& plan : plans_) {
        std::vector<StepLinks>& links = stateOf(plan.me).links;
        links.resize(plan.steps.size());
        for (std::size_t index = 0; index < plan.steps.size(); ++index) {
            const Step& step = plan.steps[index];
            const int number = static_cast<int>(index);
            for (const int before : step.after) {
                links[static_cast<std::size_t>(before)].next.push_back(number);
            }
            links[index].needs = static_cast<int>(step.after.size());
            for (const Rank peer : step.peers) {
                if (step.verb == Verb::kSend)
                    sends[{plan.me, peer, step.channel}].push_back(number);
                if (step.verb == Verb::kRecv)
                    recvs[{peer, plan.me, step.channel}].push_back(number);
                if (step.verb == Verb::kSignal) signals[{plan.me, peer}].push_back(number);
                if (step.verb == Verb::kWait) waits[{peer, plan.me}].push_back(number);
            }
        }
    }
    for (const auto& [lane, numbers] : sends) {
        const std::vector<int>& others = recvs[lane];
        if (others.size() != numbers.size()) {
            return Status::invalidArgument("rank " + std::to_string(std::get<0>(lane)) + " sends " +
                                           std::to_string(numbers.size()) + " messages, rank " +
                                           std::to_string(std::get<1>(lane)) + " receives " +
                                           std::to_string(others.size()));
        }
        for (std::size_t nth = 0; nth < numbers.size(); ++nth) {
            linksOf(std::get<0>(lane), numbers[nth]).partner = others[nth];
            linksOf(std::get<1>(lane), others[nth]).partner = numbers[nth];
        }
    }
    return connectOrder(signals, waits);
}

Status Simulation::connectOrder(const std::map<std::pair<Rank, Rank>, std::vector<int>>& signals,
                                const std::map<std::pair<Rank, Rank>, std::vector<int>>& waits) {
    for (const auto& [pair, numbers] : waits) {
        const auto found = signals.find(pair);
        if (found == signals.end() || found->second.size() < numbers.size()) {
            return Status::invalidArgument("rank " + std::to_string(pair.second) +
                                           " waits for a signal that rank " +
                                           std::to_string(pair.first) + " never gives");
        }
        for (std::size_t nth = 0; nth < numbers.size(); ++nth) {
            linksOf(pair.first, found->second[nth]).wakes.emplace_back(pair.second, numbers[nth]);
            linksOf(pair.second, numbers[nth]).needs += 1;
        }
    }
    return {};
}

// All segments are costed at the size of the larger ones.
void Simulation::measure() {
    const SegmentSizes sizes = segmentSizes(call_);
    const std::int64_t elements = sizes.largeOnes > 0 ? sizes.large : sizes.small;
    for (const Plan& plan : plans_) {
        for (std::size_t index = 0; index < plan.steps.size(); ++index) {
            const Step& step = plan.steps[index];
            const Slice* slice = &step.target;
            if (step.verb == Verb::kSend) slice = &step.sources.front();
            stateOf(plan.me).links[index].bytes = bytesOf(plan, *slice, elements, call_.type);
        }
    }
}

Result<double> Simulation::run() {
    ISTHMUS_TRY(connect());
    measure();
    for (RankState& rank : ranks_) {
        rank.segments.resize(static_cast<std::size_t>(call_.segments));
        unfinished_ += call_.segments;
    }
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
        const int first = std::min(call_.window, call_.segments);
        for (int segment = 0; segment < first; ++segment) startSegment(0, static_cast<Rank>(rank));
    }
    while (!events_.empty()) {
        const Event event = events_.top();
        events_.pop();
        serve(event);
    }
    if (unfinished_ > 0) return Status::invalidArgument("the plans wait for each other for ever");
    return end_;
}

void Simulation::push(double at, What what, Rank rank, int segment, int step) {
    events_.push({at, made_++, what, rank, segment, step});
}

void Simulation::startSegment(double at, Rank rank) {
    RankState& state = stateOf(rank);
    const int segment = state.started++;
    Progress& progress = progressOf(rank, segment);
    progress.left = static_cast<int>(state.links.size());
    if (progress.left == 0) {
        --unfinished_;
        if (state.started < call_.segments) startSegment(at, rank);
        return;
    }
    // A signal may have come before this rank began: needs are then below zero already.
    progress.needs.resize(state.links.size(), 0);
    progress.posted.resize(state.links.size(), -1);
    for (std::size_t step = 0; step < state.links.size(); ++step) {
        progress.needs[step] += state.links[step].needs;
        if (progress.needs[step] == 0)
            push(at, What::kReady, rank, segment, static_cast<int>(step));
    }
}

void Simulation::serve(const Event& event) {
    switch (event.what) {
    case What::kReady:
        return onReady(event);
    case What::kDone:
        return onDone(event);
    case What::kPiece:
        return satisfy(event.at, event.rank, event.segment, event.step);
    }
}

// One more of what `step` needs is there.
void Simulation::satisfy(double at, Rank rank, int segment, int step) {
    Progress& progress = progressOf(rank, segment);
    if (progress.needs.empty()) progress.needs.resize(stateOf(rank).links.size(), 0);
    const int needs = --progress.needs[static_cast<std::size_t>(step)];
    if (needs == 0 && segment < stateOf(rank).started) {
        push(at, What::kReady, rank, segment, step);
    }
}

void Simulation::onReady(const Event& event) {
    const Step& step = stepOf(event.rank, event.step);
    const double bytes = static_cast<double>(linksOf(event.rank, event.step).bytes);
    switch (step.verb) {
    case Verb::kCopy:
        return work(event, bytes / rankRate(event.rank, model_.nodeBytesPerSecond));
    case Verb::kReduce: {
        const double read = bytes * static_cast<double>(step.sources.size());
        return work(event, read / rankRate(event.rank, model_.reduceBytesPerSecond));
    }
    case Verb::kSend:
    case Verb::kRecv:
        return postMessage(event);
    case Verb::kSignal:
        raise(event);
        break;
    case Verb::kWait:
        break;
    }
    push(event.at, What::kDone, event.rank, event.segment, event.step);
}

void Simulation::work(const Event& event, double seconds) {
    RankState& state = stateOf(event.rank);
    state.cpuFree = std::max(state.cpuFree, event.at) + seconds;
    push(state.cpuFree, What::kDone, event.rank, event.segment, event.step);
}

void Simulation::raise(const Event& event) {
    for (const auto& [rank, step] : linksOf(event.rank, event.step).wakes) {
        const bool isNear = sameNode(event.rank, rank);
        const double delay = isNear ? model_.meetSeconds : model_.wireLatencySeconds;
        push(event.at + delay, What::kPiece, rank, event.segment, step);
    }
}

// A message moves when both sides are ready for it.
void Simulation::postMessage(const Event& event) {
    const bool isSend = stepOf(event.rank, event.step).verb == Verb::kSend;
    const Rank peer = stepOf(event.rank, event.step).peers.front();
    RankState& state = stateOf(event.rank);
    state.cpuFree = std::max(state.cpuFree, event.at) + model_.messageSeconds / 2;
    progressOf(event.rank, event.segment).posted[static_cast<std::size_t>(event.step)] =
        state.cpuFree;
    const int partner = linksOf(event.rank, event.step).partner;
    const std::vector<double>& theirs = progressOf(peer, event.segment).posted;
    if (partner < 0 || theirs.empty()) return;
    const double other = theirs[static_cast<std::size_t>(partner)];
    if (other < 0) return;
    transfer(std::max(state.cpuFree, other), isSend ? event.rank : peer, event.segment,
             isSend ? event.step : partner);
}

// Through the sender's card, the links of both racks where these differ, and the receiver's card. A
// message holds each for as long as that one needs for its bytes. A faster one takes what arrives
// no sooner than a slower one gives it.
Simulation::Passage Simulation::overWire(double at, int from, int to, double bytes) {
    const auto sender = static_cast<std::size_t>(from);
    const auto receiver = static_cast<std::size_t>(to);
    double& egress = egressFree_[sender];
    double& ingress = ingressFree_[receiver];
    const bool isBetween = rackOf_[sender] != rackOf_[receiver] && model_.rackBytesPerSecond > 0;
    if (!isBetween) {
        const double begins = std::max(at, egress);
        egress = begins + bytes / model_.wireOf(sender);
        const double taken =
            std::max(begins + model_.wireLatencySeconds, ingress) + bytes / model_.wireOf(receiver);
        ingress = std::max(taken, egress + model_.wireLatencySeconds);
        return {egress, ingress};
    }
    const double between = bytes / model_.rackBytesPerSecond;
    double& out = rackEgressFree_[static_cast<std::size_t>(rackOf_[sender])];
    double& in = rackIngressFree_[static_cast<std::size_t>(rackOf_[receiver])];
    const double begins = std::max({at, egress, out});
    const double arrives = std::max({begins + model_.wireLatencySeconds, ingress, in});
    egress = begins + bytes / model_.wireOf(sender);
    out = begins + between;
    ingress = arrives + bytes / model_.wireOf(receiver);
    in = arrives + between;
    const double sent = std::max(egress, out);
    return {sent, std::max({ingress, in, sent + model_.wireLatencySeconds})};
}

void Simulation::transfer(double at, Rank from, int segment, int step) {
    const Rank to = stepOf(from, step).peers.front();
    const int partner = linksOf(from, step).partner;
    const double bytes = static_cast<double>(linksOf(from, step).bytes);
    double sent = 0;
    double arrived = 0;
    if (sameNode(from, to)) {
        sent = at + model_.meetSeconds + bytes / rankRate(to, model_.nodeBytesPerSecond);
        arrived = sent;
    } else {
        const Passage passage = overWire(at, nodeOf_[static_cast<std::size_t>(from)],
                                         nodeOf_[static_cast<std::size_t>(to)], bytes);
        sent = passage.sent;
        arrived = passage.arrived;
    }
    push(sent, What::kDone, from, segment, step);
    push(arrived, What::kDone, to, segment, partner);
}

void Simulation::onDone(const Event& event) {
    RankState& state = stateOf(event.rank);
    for (const int next : linksOf(event.rank, event.step).next) {
        satisfy(event.at, event.rank, event.segment, next);
    }
    Progress& progress = progressOf(event.rank, event.segment);
    if (--progress.left > 0) return;
    end_ = std::max(end_, event.at);
    --unfinished_;
    if (state.started < call_.segments) startSegment(event.at, event.rank);
}

}  // namespace isthmus
