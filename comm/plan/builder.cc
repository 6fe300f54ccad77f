#include "comm/plan/builder.hpp"

#include "comm/plan/edges.hpp"

namespace isthmus {

Slice At::slice(Buffer buffer, const Chunks& chunks) const {
    Slice slice;
    slice.reserve(chunks.size());
    for (const int chunk : chunks) slice.push_back({rank_, buffer, chunk});
    return slice;
}

PlanBuilder::PlanBuilder(Collective collective, Rank me, int ranks, Rank root, Chunking chunking,
                         std::vector<int> nodeOfRank, Mapping mapping)
    : nodeOfRank_(std::move(nodeOfRank)) {
    plan_.collective = collective;
    plan_.me = me;
    plan_.ranks = ranks;
    plan_.root = root;
    plan_.mapping = mapping;
    plan_.chunking = std::move(chunking);
}

Place PlanBuilder::input() const {
    return [mine = At(me())](const Chunks& chunks) { return mine.input(chunks); };
}

Place PlanBuilder::output() const {
    return [mine = At(me())](const Chunks& chunks) { return mine.output(chunks); };
}

Place PlanBuilder::shared() const {
    return [mine = At(me())](const Chunks& slots) { return mine.shared(slots); };
}

std::vector<ChunkName> PlanBuilder::like(const Slice& slice) const {
    const Operand operand = Operand::of(plan_);
    std::vector<ChunkName> names;
    names.reserve(slice.size());
    for (const Location& location : slice) {
        const auto slot = static_cast<std::size_t>(location.chunk);
        if (operand.has(location)) {
            names.push_back(operand.meaning(location));
        } else if (location.buffer == Buffer::kScratch && slot < plan_.scratch.size()) {
            names.push_back(plan_.scratch[slot]);
        } else if (location.buffer == Buffer::kShared && slot < plan_.shared.size()) {
            names.push_back(plan_.shared[slot]);
        } else {
            names.push_back({});
        }
    }
    return names;
}

Slice PlanBuilder::grab(Buffer buffer, std::vector<ChunkName>& slots,
                        const std::vector<ChunkName>& like) {
    Slice grabbed;
    grabbed.reserve(like.size());
    for (const ChunkName& name : like) {
        grabbed.push_back({me(), buffer, static_cast<int>(slots.size())});
        slots.push_back(name);
    }
    return grabbed;
}

Slice PlanBuilder::grabScratch(const std::vector<ChunkName>& like) {
    return grab(Buffer::kScratch, plan_.scratch, like);
}

Slice PlanBuilder::grabShared(const std::vector<ChunkName>& like) {
    return grab(Buffer::kShared, plan_.shared, like);
}

void PlanBuilder::copy(const Slice& target, const Slice& source, Completes completes) {
    if (target.empty() && source.empty()) return;
    Step step;
    step.verb = Verb::kCopy;
    step.target = target;
    step.sources = {source};
    step.completes = completes == Completes::kYes;
    plan_.steps.push_back(std::move(step));
}

void PlanBuilder::reduce(const Slice& target, const std::vector<Slice>& sources,
                         Completes completes) {
    if (target.empty()) return;
    Step step;
    step.verb = Verb::kReduce;
    step.target = target;
    step.sources = sources;
    step.completes = completes == Completes::kYes;
    plan_.steps.push_back(std::move(step));
}

void PlanBuilder::send(Rank peer, const Slice& slice, int channel) {
    if (slice.empty()) return;
    Step step;
    step.verb = Verb::kSend;
    step.sources = {slice};
    step.peers = {peer};
    step.channel = channel;
    plan_.steps.push_back(std::move(step));
}

void PlanBuilder::recv(Rank peer, const Slice& slice, int channel) {
    if (slice.empty()) return;
    Step step;
    step.verb = Verb::kRecv;
    step.target = slice;
    step.peers = {peer};
    step.channel = channel;
    plan_.steps.push_back(std::move(step));
}

void PlanBuilder::signal(std::span<const Rank> peers) {
    order(Verb::kSignal, peers);
}

void PlanBuilder::wait(std::span<const Rank> peers) {
    order(Verb::kWait, peers);
}

void PlanBuilder::meet(std::span<const Rank> group) {
    signal(group);
    wait(group);
}

void PlanBuilder::order(Verb verb, std::span<const Rank> peers) {
    Step step;
    step.verb = verb;
    for (const Rank peer : peers) {
        if (peer != me()) step.peers.push_back(peer);
    }
    if (!step.peers.empty()) plan_.steps.push_back(std::move(step));
}

PlanBuilder& PlanBuilder::setAlgorithm(std::string name) {
    plan_.algorithm = std::move(name);
    return *this;
}

PlanBuilder& PlanBuilder::setInPlaceSafe(bool isSafe) {
    plan_.inPlaceSafe = isSafe;
    return *this;
}

PlanBuilder& PlanBuilder::setSharedOutlivesCall(bool outlives) {
    plan_.sharedOutlivesCall = outlives;
    return *this;
}

PlanBuilder& PlanBuilder::setSumming(std::vector<Rank> ranks) {
    plan_.summing = std::move(ranks);
    return *this;
}

Result<Plan> PlanBuilder::finish() {
    if (Status status = checkPlan(plan_, nodeOfRank_); !status.ok()) return status;
    inferEdges(plan_);
    return std::move(plan_);
}

}  // namespace isthmus
