// The six verbs of a Plan, done.
#include <algorithm>
#include <span>

#include "comm/engine/engine.hpp"
#include "comm/engine/execution.hpp"
#include "comm/engine/membership.hpp"
#include "comm/memory/peer_read.hpp"
#include "comm/reduce/reducer.hpp"

namespace isthmus {

namespace {

bool follows(const MemoryPiece& first, const MemoryPiece& second) {
    return first.address + first.bytes == second.address;
}

}  // namespace

MemoryPiece Execution::pieceOf(const SegmentRun& run, const Location& location,
                               const ChunkName& name) const {
    const std::size_t bytes = extents_->bytesIn(name, run.segment);
    if (bytes == 0) return {};  // its buffer may not be there at all
    switch (location.buffer) {
    case Buffer::kInput:
        return {inputOf(run, location, name), bytes};
    case Buffer::kOutput: {
        const Member& owner = group_.member(location.rank);
        std::byte* base =
            location.rank == group_.me()
                ? call_->output
                : owner.arena.base + group_.slotOf(owner.position, lane_).outputOffset;
        return {base + extents_->offsetOf(location, run.segment), bytes};
    }
    case Buffer::kScratch:
        return {scratch_.data + scratchStride_ * slotOf(run) + scratchOffsets_[location.chunk],
                bytes};
    case Buffer::kShared:
        return {sharedOf(run, location), bytes};
    }
    return {};
}

std::byte* Execution::inputOf(const SegmentRun& run, const Location& location,
                              const ChunkName& name) const {
    const bool isMine = location.rank == group_.me();
    const std::byte* base = input_;
    std::size_t offset = 0;
    if (!isMine) {
        const Member& owner = group_.member(location.rank);
        const CallSlot& slot = group_.slotOf(owner.position, lane_);
        base = isForeign(location)
                   // NOLINTNEXTLINE(performance-no-int-to-ptr): of its process
                   ? reinterpret_cast<const std::byte*>(slot.inputAddress)
                   : owner.arena.base + slot.inputOffset;
        if (isUneven_) offset = slot.blocks()[group_.myPosition()].inputOffset;
    }
    offset += isUneven_ && !isMine ? extents_->offsetInBlock(name, run.segment)
                                   : extents_->offsetOf(location, run.segment);
    return const_cast<std::byte*>(base) + offset;
}

std::byte* Execution::sharedOf(const SegmentRun& run, const Location& location) const {
    const auto at = static_cast<std::size_t>(location.chunk);
    if (location.rank == group_.me())
        return shared_ + sharedStride_ * slotOf(run) + sharedOffsets_[at];
    const Member& owner = group_.member(location.rank);
    const CallSlot& slot = group_.slotOf(owner.position, lane_);
    const std::size_t offset =
        isUneven_ ? slot.sharedSlotBytes * (plan_->plan.shared.size() * slotOf(run) + at)
                  : sharedStride_ * slotOf(run) + sharedOffsets_[at];
    return owner.arena.base + slot.sharedOffset + offset;
}

void Execution::raise(SegmentRun& run, int step) {
    const int slot = slotOf(run);
    for (const CompiledPlan::Peer& peer : plan_->nodes[step].peers) {
        if (peer.position < 0) {
            postSignal(run, step, peer, true);
            continue;
        }
        const std::uint64_t value =
            group_.raisedBase(lane_, slot, peer.position) + peer.ordinal + 1;
        auto& counter = group_.myBlock().line(peer.position).raised[lane_][slot];
        // Release: pairs with isSatisfied() at the peer.
        counter.store(value, std::memory_order_release);
        group_.noteNews(peer.position);
    }
}

void Execution::beginWait(SegmentRun& run, int step) {
    SegmentRun::Waiting waiting{step, 0};
    for (const CompiledPlan::Peer& peer : plan_->nodes[step].peers) {
        if (peer.position >= 0) continue;
        postSignal(run, step, peer, false);
        ++waiting.remote;
    }
    run.waiting.push_back(waiting);
}

StepOperation* Execution::newOperation(const SegmentRun& run, int step, Rank peer, bool isSend) {
    StepOperation* operation = group_.engine().takeOperation();
    operation->execution = this;
    operation->slot = slotOf(run);
    operation->step = step;
    operation->outcome = {};
    operation->moved = 0;
    operation->priority = static_cast<std::uint8_t>(call_->priority);
    operation->fingerprint = fingerprint_;
    operation->done = &Execution::landed;
    operation->pieces.clear();
    MessageTag& tag = operation->tag;
    tag.communicator = group_.id();
    tag.sequence = sequence_;
    tag.segment = static_cast<std::uint32_t>(run.segment);
    tag.from = static_cast<std::uint16_t>(isSend ? group_.me() : peer);
    tag.to = static_cast<std::uint16_t>(isSend ? peer : group_.me());
    tag.pointToPoint = false;
    ++pending_;
    flying_.push_back(operation);
    return operation;
}

void Execution::postSignal(SegmentRun& run, int step, const CompiledPlan::Peer& peer, bool isSend) {
    StepOperation* operation = newOperation(run, isSend ? -1 : step, peer.rank, isSend);
    operation->tag.channel = kSignalChannel;
    operation->tag.index = peer.ordinal;
    Endpoint& endpoint = *group_.member(peer.rank).endpoint;
    isSend ? endpoint.postSend(*operation) : endpoint.postRecv(*operation);
}

void Execution::post(SegmentRun& run, int index) {
    const Step& step = plan_->plan.steps[index];
    const bool isSend = step.verb == Verb::kSend;
    const Slice& slice = isSend ? step.sources.front() : step.target;
    StepOperation* operation = newOperation(run, index, step.peers.front(), isSend);
    std::size_t bytes = 0;
    const auto& names =
        isSend ? plan_->nodes[index].sourceNames.front() : plan_->nodes[index].targetNames;
    for (std::size_t at = 0; at < slice.size(); ++at) {
        const MemoryPiece piece = pieceOf(run, slice[at], names[at]);
        if (piece.bytes == 0) continue;
        bytes += piece.bytes;
        if (!operation->pieces.empty() && follows(operation->pieces.back(), piece)) {
            operation->pieces.back().bytes += piece.bytes;
        } else {
            operation->pieces.push_back(piece);
        }
    }
    if (bytes == 0) {  // both sides drop it; what depends on it goes on
        --pending_;
        flying_.pop_back();
        group_.engine().giveOperation(operation);
        completeStep(run, index);
        return;
    }
    operation->tag.channel = static_cast<std::uint16_t>(step.channel);
    operation->tag.index = plan_->nodes[index].message;
    Endpoint& endpoint = *group_.member(step.peers.front()).endpoint;
    isSend ? endpoint.postSend(*operation) : endpoint.postRecv(*operation);
}

std::size_t Execution::runHeavy(SegmentRun& run, int index) {
    const Step& step = plan_->plan.steps[index];
    const bool isCopy =
        step.verb == Verb::kCopy || (step.sources.size() == 1 && plan_->nodes[index].also.empty());
    return isCopy ? runCopy(run, index) : runReduce(run, index);
}

bool Execution::isForeign(const Location& location) const {
    return plan_->plan.mapping == Mapping::kRead && location.buffer == Buffer::kInput &&
           location.rank != plan_->plan.me;
}

void Execution::copyFrom(Rank owner, const MemoryPiece& to, const MemoryPiece& from) {
    Status status = readPeer(group_.member(owner).pid, to.address, from.address, to.bytes);
    if (status.ok() || isStopped_) return;
    group_.fail(
        status.within(group_.title(*call_, sequence_) + ": the input of " + group_.nameOf(owner)));
}

std::size_t Execution::runCopy(SegmentRun& run, int index) {
    const Step& step = plan_->plan.steps[index];
    const auto& names = plan_->nodes[index].targetNames;
    const Slice& source = step.sources.front();
    std::size_t total = 0;
    for (std::size_t i = 0; i < step.target.size();) {
        MemoryPiece to = pieceOf(run, step.target[i], names[i]);
        MemoryPiece from = pieceOf(run, source[i], names[i]);
        std::size_t next = i + 1;
        for (; next < step.target.size(); ++next) {
            const MemoryPiece moreTo = pieceOf(run, step.target[next], names[next]);
            const MemoryPiece moreFrom = pieceOf(run, source[next], names[next]);
            if (!follows(to, moreTo) || !follows(from, moreFrom)) break;
            if (source[next].rank != source[i].rank) break;
            to.bytes += moreTo.bytes;
            from.bytes += moreFrom.bytes;
        }
        if (to.bytes > 0 && isForeign(source[i])) {
            copyFrom(source[i].rank, to, from);
            if (isStopped_) return total;
        } else if (to.bytes > 0 && to.address != from.address) {
            const bool isResult = step.target[i].buffer == Buffer::kOutput;
            // In place its lines were read as the input a little earlier.
            const bool isCached = call_->input == call_->output;
            copyBytes(to.address, from.address, to.bytes, isStreaming_ && isResult && !isCached);
        }
        total += to.bytes;
        i = next;
    }
    return total;
}

void Execution::placesOf(const SegmentRun& run, int index, std::size_t at,
                         std::vector<MemoryPiece>& places) const {
    const Step& step = plan_->plan.steps[index];
    const ChunkName& name = plan_->nodes[index].targetNames[at];
    places.clear();
    places.push_back(pieceOf(run, step.target[at], name));
    for (const Slice& target : plan_->nodes[index].also)
        places.push_back(pieceOf(run, target[at], name));
    for (const Slice& source : step.sources) places.push_back(pieceOf(run, source[at], name));
}

std::size_t Execution::runReduce(SegmentRun& run, int index) {
    const Step& step = plan_->plan.steps[index];
    const std::size_t operands = step.sources.size();
    const std::size_t results = plan_->nodes[index].also.size() + 1;
    const bool isAverage = call_->op == ReduceOp::kAvg && step.completes;
    const double scale = isAverage ? 1.0 / plan_->plan.contributors() : 1.0;
    std::size_t total = 0;
    for (std::size_t at = 0; at < step.target.size();) {
        placesOf(run, index, at++, places_);
        for (; at < step.target.size(); ++at) {
            placesOf(run, index, at, morePlaces_);
            if (!std::equal(places_.begin(), places_.end(), morePlaces_.begin(), follows)) break;
            for (std::size_t i = 0; i < places_.size(); ++i)
                places_[i].bytes += morePlaces_[i].bytes;
        }
        const std::size_t bytes = places_.front().bytes;
        if (bytes == 0) continue;
        addresses_.clear();
        for (const MemoryPiece& place : places_) addresses_.push_back(place.address);
        const std::span<void* const> targets = std::span(addresses_).first(results);
        const std::span<const void* const> sources{addresses_.data() + results, operands};
        // A line that was just read is in the cache: storing around it costs twice as much.
        const bool isRead = std::count(sources.begin(), sources.end(), targets.front()) > 0;
        const bool isResult = step.target.front().buffer == Buffer::kOutput;
        const std::size_t elements = bytes / bytesOf(call_->type);
        if (call_->reduction) {
            reduceByUser(*call_->reduction, call_->type, targets, sources, elements);
        } else {
            reduceToMany(call_->type, call_->op, targets, sources, elements, scale,
                         isStreaming_ && isResult && !isRead);
        }
        total += bytes * operands;
    }
    return total;
}

bool Execution::mayMove() const {
    if (isStopped_ || isDone_ || !flying_.empty() || !landed_.empty()) return true;
    for (std::size_t i = 0; i < verified_.size() && unverified_ > 0; ++i) {
        if (!verified_[i] && hasEntered(static_cast<int>(i))) return true;
    }
    for (const SegmentRun& run : runs_) {
        if (run.nextReady < run.ready.size()) return true;
        for (const auto& waiting : run.waiting) {
            if (isSatisfied(run, waiting)) return true;
        }
    }
    return false;
}

Awaited Execution::place(int position, int cpu) const {
    if (position < 0) return Awaited::kUnknown;
    const int theirs = group_.onNode(position).block->cpu.load(std::memory_order_relaxed);
    if (theirs == cpu) return Awaited::kHere;
    // In a bulky call whoever shares this CPU has copies of its own to do: it may have its turn.
    return isBulky_ ? Awaited::kUnknown : Awaited::kElsewhere;
}

Awaited Execution::awaited(int cpu) const {
    auto found = Awaited::kNobody;
    for (std::size_t i = 0; i < verified_.size(); ++i) {
        if (!verified_[i]) found = std::max(found, place(static_cast<int>(i), cpu));
    }
    for (const SegmentRun& run : runs_) {
        for (const auto& waiting : run.waiting) {
            if (waiting.remote > 0) found = std::max(found, Awaited::kUnknown);
            for (const CompiledPlan::Peer& peer : plan_->nodes[waiting.step].peers) {
                if (peer.position >= 0 && !hasRaised(run, peer))
                    found = std::max(found, place(peer.position, cpu));
            }
        }
    }
    for (const StepOperation* operation : flying_) {
        const MessageTag& tag = operation->tag;
        const Rank peer = tag.to == group_.me() ? tag.from : tag.to;
        found = std::max(found, place(group_.member(peer).position, cpu));
    }
    return found;
}

int Execution::awaitedPosition() const {
    for (std::size_t i = 0; i < verified_.size() && unverified_ > 0; ++i) {
        if (!verified_[i]) return static_cast<int>(i);
    }
    const SegmentRun* only = nullptr;
    for (const SegmentRun& run : runs_) {
        if (run.waiting.empty()) continue;
        if (only != nullptr || run.waiting.size() > 1) return -1;
        only = &run;
    }
    if (only == nullptr) return -1;
    for (const CompiledPlan::Peer& peer : plan_->nodes[only->waiting.front().step].peers) {
        if (peer.position >= 0 && !hasRaised(*only, peer)) return peer.position;
    }
    return -1;
}

std::string Execution::standing(std::vector<Rank>& awaited) const {
    for (std::size_t i = 0; i < verified_.size(); ++i) {
        if (!verified_[i]) awaited.push_back(group_.nodeRanks()[i]);
    }
    if (!awaited.empty()) return "some of its node are missing";
    if (!plan_) return "choosing between direct and staged";
    int done = 0;
    for (const SegmentRun& run : runs_) {
        if (run.segment < 0) continue;
        done = static_cast<int>(plan_->nodes.size()) - run.left;
        for (const auto& waiting : run.waiting) {
            for (const CompiledPlan::Peer& peer : plan_->nodes[waiting.step].peers)
                awaited.push_back(peer.rank);
        }
        break;
    }
    std::uint64_t moved = 0;
    for (const StepOperation* operation : flying_) {
        const bool isToMe = operation->tag.to == group_.me();
        awaited.push_back(isToMe ? operation->tag.from : operation->tag.to);
        moved += operation->moved;
    }
    std::sort(awaited.begin(), awaited.end());
    awaited.erase(std::unique(awaited.begin(), awaited.end()), awaited.end());
    return plan_->plan.algorithm + " segment " + std::to_string(endedSegments_ + 1) + " of " +
           std::to_string(segments_) + ", step " + std::to_string(done) + " of " +
           std::to_string(plan_->nodes.size()) + ", " + std::to_string(moved) +
           " bytes of open messages done";
}

}  // namespace isthmus
