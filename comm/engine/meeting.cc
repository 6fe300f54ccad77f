#include "comm/engine/meeting.hpp"

#include <algorithm>
#include <utility>

#include "comm/reduce/reducer.hpp"

namespace isthmus {

namespace {

bool hasListedCounts(const BlockCounts& counts) {
    return !counts.each.empty() || !counts.sent.empty() || !counts.received.empty();
}

}  // namespace

bool Meeting::isBoundTo(const std::shared_ptr<const CompiledPlan>& plan,
                        const CallRequest& call) const {
    return plan_ == plan && uniform_ == call.counts.uniform && type_ == call.type && !hasCounts_ &&
           !hasListedCounts(call.counts);
}

void Meeting::bind(std::shared_ptr<const CompiledPlan> plan, const CallRequest& call) {
    if (isBoundTo(plan, call)) return;
    plan_ = std::move(plan);
    uniform_ = call.counts.uniform;
    type_ = call.type;
    hasCounts_ = hasListedCounts(call.counts);
    const Extents extents(plan_->plan, call, 1);
    sharedOffsets_.clear();
    sharedBytes_ = 0;
    for (const ChunkName& slot : plan_->plan.shared) {
        sharedOffsets_.push_back(sharedBytes_);
        sharedBytes_ = (sharedBytes_ + extents.scratchCapacity(slot) + 7) / 8 * 8;
    }
    moves_ = {};
    for (std::size_t step = 0; step < plan_->nodes.size(); ++step)
        addMoves(static_cast<int>(step), extents);
}

Meeting::Place Meeting::placeOf(const Location& location, const Extents& extents) const {
    switch (location.buffer) {
    case Buffer::kInput:
        return {kInput, extents.offsetOf(location, 0)};
    case Buffer::kOutput:
        return {kOutput, extents.offsetOf(location, 0)};
    case Buffer::kScratch:
    case Buffer::kShared:
        break;
    }
    return {kShared + plan_->positionOf[location.rank], sharedOffsets_[location.chunk]};
}

void Meeting::addMoves(int step, const Extents& extents) {
    const Step& what = plan_->plan.steps[step];
    const CompiledPlan::Node& node = plan_->nodes[step];
    const bool isHeavy = what.verb == Verb::kCopy || what.verb == Verb::kReduce;
    if (!isHeavy || node.isFused) return;
    auto& moves = moves_[step < plan_->meetsAt ? 0 : 1];
    const auto follows = [](const Move& before, const Move& next) {
        return std::equal(before.places.begin(), before.places.end(), next.places.begin(),
                          [&](const Place& a, const Place& b) {
                              return a.buffer == b.buffer && a.offset + before.bytes == b.offset;
                          });
    };
    const std::size_t firstOfStep = moves.size();
    for (std::size_t at = 0; at < what.target.size(); ++at) {
        Move move;
        move.bytes = extents.bytesIn(node.targetNames[at], 0);
        if (move.bytes == 0) continue;
        move.places.push_back(placeOf(what.target[at], extents));
        for (const Slice& target : node.also) move.places.push_back(placeOf(target[at], extents));
        move.results = move.places.size();
        for (const Slice& source : what.sources)
            move.places.push_back(placeOf(source[at], extents));
        move.isCopy = what.verb == Verb::kCopy || (what.sources.size() == 1 && node.also.empty());
        move.completes = what.completes;
        if (moves.size() > firstOfStep && follows(moves.back(), move)) {
            moves.back().bytes += move.bytes;
        } else {
            moves.push_back(std::move(move));
        }
    }
}

void Meeting::run(int phase, const CallRequest& call, const Buffers& buffers) {
    const auto addressOf = [&](const Place& place) -> std::byte* {
        if (place.buffer >= kShared) return buffers.shared[place.buffer - kShared] + place.offset;
        return (place.buffer == kOutput ? buffers.output : const_cast<std::byte*>(buffers.input)) +
               place.offset;
    };
    for (const Move& move : moves_[phase]) {
        if (move.isCopy) {
            std::byte* const to = addressOf(move.places.front());
            const std::byte* const from = addressOf(move.places.back());
            if (to != from) copyBytes(to, from, move.bytes, false);
            continue;
        }
        addresses_.clear();
        for (const Place& place : move.places) addresses_.push_back(addressOf(place));
        const std::span<void* const> targets = std::span(addresses_).first(move.results);
        const std::span<const void* const> sources{addresses_.data() + move.results,
                                                   addresses_.size() - move.results};
        const std::size_t elements = move.bytes / bytesOf(type_);
        if (call.reduction) {
            reduceByUser(*call.reduction, type_, targets, sources, elements);
            continue;
        }
        const bool isAverage = call.op == ReduceOp::kAvg && move.completes;
        reduceToMany(type_, call.op, targets, sources, elements,
                     isAverage ? 1.0 / plan_->plan.contributors() : 1.0, false);
    }
}

}  // namespace isthmus
