#include "comm/cost/simulation.hpp"

#include <algorithm>

namespace isthmus {

Simulation::Simulation(const StepGraph& graph, const Layout& layout, const LinkModel& model)
    : graph_(graph), model_(model), ranks_(static_cast<std::size_t>(graph.actors())) {
    nodeOf_.resize(static_cast<std::size_t>(layout.ranks()));
    placeInNode_.resize(nodeOf_.size());
    for (std::size_t node = 0; node < layout.nodes.size(); ++node) {
        int place = 0;
        for (const Rank rank : layout.nodes[node]) {
            nodeOf_[static_cast<std::size_t>(rank)] = static_cast<int>(node);
            placeInNode_[static_cast<std::size_t>(rank)] = place++;
        }
        ranksOnNode_.push_back(static_cast<double>(layout.nodes[node].size()));
    }
    layCards(layout);
    layTrunks(layout);
}

void Simulation::layCards(const Layout& layout) {
    for (std::size_t node = 0; node < layout.nodes.size(); ++node) {
        for (int card = 0; card < model_.cardsPerNode; ++card) {
            cardsOut_.push_back({model_.wireOf(node), 0});
        }
    }
    cardsIn_ = cardsOut_;
}

// Links of racks, or those of rails, of which the ranks that stand for all have their part.
void Simulation::layTrunks(const Layout& layout) {
    trunkOf_.assign(nodeOf_.size(), 0);
    const bool hasRails = model_.hasRails() && model_.railBytesPerSecond > 0;
    const bool hasRacks =
        !model_.hasRails() && !layout.racks.empty() && model_.rackBytesPerSecond > 0;
    if (!hasRails && !hasRacks) return;
    std::size_t last = 0;
    for (std::size_t rank = 0; rank < trunkOf_.size(); ++rank) {
        const int trunk = hasRails ? placeInNode_[rank] % model_.cardsPerNode
                                   : layout.racks.back()[static_cast<std::size_t>(nodeOf_[rank])];
        trunkOf_[rank] = static_cast<std::size_t>(trunk);
        last = std::max(last, trunkOf_[rank]);
    }
    const double part = static_cast<double>(graph_.actors()) / static_cast<double>(graph_.ranks());
    const double rate = hasRails ? model_.railBytesPerSecond * part : model_.rackBytesPerSecond;
    trunksOut_.assign(last + 1, {rate, 0});
    trunksIn_ = trunksOut_;
}

std::size_t Simulation::cardOf(Rank rank) const {
    const int place = placeInNode_[static_cast<std::size_t>(rank)] % model_.cardsPerNode;
    return static_cast<std::size_t>(nodeOf(rank)) * static_cast<std::size_t>(model_.cardsPerNode) +
           static_cast<std::size_t>(place);
}

double Simulation::rankRate(Rank rank, double nodeRate) const {
    return nodeRate / ranksOnNode_[static_cast<std::size_t>(nodeOf(rank))];
}

// All segments are costed at the size of the larger ones.
void Simulation::reset(const PlanCall& call) {
    call_ = call;
    const SegmentSizes sizes = segmentSizes(call);
    const std::int64_t elements = sizes.largeOnes > 0 ? sizes.large : sizes.small;
    blockBytes_ = static_cast<double>(elements) * static_cast<double>(isthmus::bytesOf(call.type));
    for (std::vector<Port>* ports : {&cardsOut_, &cardsIn_, &trunksOut_, &trunksIn_}) {
        for (Port& port : *ports) port.free = 0;
    }
    for (RankState& rank : ranks_) {
        rank = {};
        rank.segments.resize(static_cast<std::size_t>(call.segments));
    }
    events_ = {};
    made_ = 0;
    end_ = 0;
    unfinished_ = static_cast<std::int64_t>(ranks_.size()) * call.segments;
}

Result<double> Simulation::run(const PlanCall& call) {
    reset(call);
    for (Rank rank = 0; rank < graph_.actors(); ++rank) {
        const int first = std::min(call_.window, call_.segments);
        for (int segment = 0; segment < first; ++segment) startSegment(0, rank);
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
    events_.push({at, made_++, rank, segment, step, what});
}

void Simulation::startSegment(double at, Rank rank) {
    RankState& state = stateOf(rank);
    const std::vector<GraphStep>& steps = graph_.stepsOf(rank);
    const int segment = state.started++;
    Progress& progress = progressOf(rank, segment);
    progress.left = static_cast<int>(steps.size());
    if (progress.left == 0) {
        --unfinished_;
        if (state.started < call_.segments) startSegment(at, rank);
        return;
    }
    // A signal may have come before this rank began: needs are then below zero already.
    progress.needs.resize(steps.size(), 0);
    progress.times.resize(steps.size(), -1);
    for (std::size_t step = 0; step < steps.size(); ++step) {
        progress.needs[step] += steps[step].needs;
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
    case What::kDeparture:
        return onDeparture(event);
    case What::kTrunk:
        return onTrunk(event);
    case What::kArrival:
        return onArrival(event);
    }
}

// One more of what `step` needs is there.
void Simulation::satisfy(double at, Rank rank, int segment, int step) {
    Progress& progress = progressOf(rank, segment);
    if (progress.needs.empty()) progress.needs.resize(graph_.stepsOf(rank).size(), 0);
    const int needs = --progress.needs[static_cast<std::size_t>(step)];
    if (needs == 0 && segment < stateOf(rank).started) {
        push(at, What::kReady, rank, segment, step);
    }
}

void Simulation::onReady(const Event& event) {
    const GraphStep& step = stepOf(event.rank, event.step);
    switch (step.verb) {
    case Verb::kCopy:
        return work(event, bytesOf(step) / rankRate(event.rank, model_.nodeBytesPerSecond));
    case Verb::kReduce:
        return work(event, bytesOf(step) / rankRate(event.rank, model_.reduceBytesPerSecond));
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
    for (const Wake& wake : graph_.wakes(event.rank, event.step)) {
        const bool isNear = sameNode(event.rank, wake.rank);
        const double delay = isNear ? model_.meetSeconds : model_.wireLatencySeconds;
        push(event.at + delay, What::kPiece, graph_.symmetry().standIn(wake.rank), event.segment,
             wake.step);
    }
}

// A message moves when both sides are ready for it.
void Simulation::postMessage(const Event& event) {
    const GraphStep& step = stepOf(event.rank, event.step);
    const Rank other = graph_.symmetry().standIn(step.peer);
    RankState& state = stateOf(event.rank);
    state.cpuFree = std::max(state.cpuFree, event.at) + model_.messageSeconds / 2;
    progressOf(event.rank, event.segment).times[static_cast<std::size_t>(event.step)] =
        state.cpuFree;
    const std::vector<double>& theirs = progressOf(other, event.segment).times;
    if (theirs.empty()) return;
    const double ready = theirs[static_cast<std::size_t>(step.partner)];
    if (ready < 0) return;
    const bool isSend = step.verb == Verb::kSend;
    push(std::max(state.cpuFree, ready), What::kDeparture, isSend ? event.rank : other,
         event.segment, isSend ? event.step : step.partner);
}

// Bytes of many messages mix in a trunk: none waits for it to begin, all end no sooner than the
// bytes before them are through.
double Simulation::throughTrunk(Port& trunk, double at, double bytes) {
    trunk.free = std::max(at, trunk.free) + bytes / trunk.bytesPerSecond;
    return trunk.free;
}

// Out through the sender's card and, where the two are on different racks or rails, its trunk.
void Simulation::onDeparture(const Event& event) {
    const GraphStep& message = stepOf(event.rank, event.step);
    const Rank to = graph_.symmetry().standIn(message.peer);
    const double bytes = bytesOf(message);
    if (sameNode(event.rank, message.peer)) {
        const double end =
            event.at + model_.meetSeconds + bytes / rankRate(to, model_.nodeBytesPerSecond);
        push(end, What::kDone, event.rank, event.segment, event.step);
        push(end, What::kDone, to, event.segment, message.partner);
        return;
    }
    Port& card = cardsOut_[cardOf(event.rank)];
    const double begins = std::max(event.at, card.free);
    card.free = begins + bytes / card.bytesPerSecond;
    if (isOverTrunks(event.rank, message.peer))
        push(begins, What::kTrunk, event.rank, event.segment, event.step);
    else
        leave(event, begins, card.free);
}

void Simulation::onTrunk(const Event& event) {
    const double bytes = bytesOf(stepOf(event.rank, event.step));
    const double sent = event.at + bytes / cardsOut_[cardOf(event.rank)].bytesPerSecond;
    const double through = throughTrunk(trunksOut_[trunkOf(event.rank)], event.at, bytes);
    leave(event, event.at, std::max(sent, through));
}

void Simulation::leave(const Event& event, double begins, double sent) {
    const GraphStep& message = stepOf(event.rank, event.step);
    const Rank to = graph_.symmetry().standIn(message.peer);
    push(sent, What::kDone, event.rank, event.segment, event.step);
    progressOf(to, event.segment).times[static_cast<std::size_t>(message.partner)] =
        sent + model_.wireLatencySeconds;
    push(begins + model_.wireLatencySeconds, What::kArrival, to, event.segment, message.partner);
}

// In through the receiver's trunk and card, in the order of arrival; no sooner than it comes.
void Simulation::onArrival(const Event& event) {
    const GraphStep& message = stepOf(event.rank, event.step);
    const double bytes = bytesOf(message);
    const double last =
        progressOf(event.rank, event.segment).times[static_cast<std::size_t>(event.step)];
    Port& card = cardsIn_[cardOf(event.rank)];
    card.free = std::max(std::max(event.at, card.free) + bytes / card.bytesPerSecond, last);
    double arrived = card.free;
    if (isOverTrunks(event.rank, message.peer))
        arrived = std::max(arrived, throughTrunk(trunksIn_[trunkOf(event.rank)], event.at, bytes));
    push(arrived, What::kDone, event.rank, event.segment, event.step);
}

void Simulation::onDone(const Event& event) {
    RankState& state = stateOf(event.rank);
    for (const int next : graph_.after(event.rank, event.step)) {
        satisfy(event.at, event.rank, event.segment, next);
    }
    Progress& progress = progressOf(event.rank, event.segment);
    if (--progress.left > 0) return;
    progress = {};
    end_ = std::max(end_, event.at);
    --unfinished_;
    if (state.started < call_.segments) startSegment(event.at, event.rank);
}

}  // namespace isthmus
