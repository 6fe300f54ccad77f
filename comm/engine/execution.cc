#include "comm/engine/execution.hpp"

#include <algorithm>
#include <utility>

#include "comm/base/assert.hpp"
#include "comm/engine/engine.hpp"
#include "comm/engine/membership.hpp"
#include "comm/reduce/reducer.hpp"

namespace isthmus {

namespace {

// Bytes of copies and reductions of one call before others get their turn: about 100 us at memory
// speed.
constexpr std::size_t kTurnBytes = std::size_t{2} << 20;

std::size_t alignUp(std::size_t bytes, std::size_t alignment) {
    return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace

Execution::Execution(Membership& group) : group_(group) {}

Execution::~Execution() {
    end();
}

void Execution::begin(std::unique_ptr<CallRequest> call, std::uint64_t sequence) {
    call_ = std::move(call);
    sequence_ = sequence;
    lane_ = static_cast<int>(sequence % kLanes);
    fingerprint_ = call_->fingerprint();
    isDone_ = isStopped_ = isStreaming_ = false;
    isUneven_ = !call_->counts.sent.empty();
    isShown_ = false;
    copiesBySegment_ = false;
    pieceElements_ = 0;
    verified_.assign(group_.nodeRanks().size(), 0);
    verified_[group_.myPosition()] = 1;
    unverified_ = static_cast<int>(verified_.size()) - 1;
    inputOffset_ = outputOffset_ = kNotMapped;
    canBeRead_ = false;
    decidedAt_ = Time(0);
    segments_ = window_ = nextSegment_ = endedSegments_ = 0;
    scratchStride_ = sharedStride_ = sharedBytes_ = sharedSlotBytes_ = 0;
    input_ = call_->input;
}

void Execution::end() {
    ISTHMUS_ASSERT(pending_ == 0);
    Engine& engine = group_.engine();
    engine.giveScratch(std::exchange(inputCopy_, {}));
    engine.giveScratch(std::exchange(scratch_, {}));
    const ScratchPool::Block shared = std::exchange(sharedBlock_, {});
    if (plan_ && plan_->plan.sharedOutlivesCall) {
        group_.keep(lane_, shared);
    } else {
        engine.giveScratch(shared);  // peers are done with it (exit closure)
    }
    shared_ = nullptr;
    scratchOffsets_.clear();
    sharedOffsets_.clear();
    fresh_.clear();
    for (SegmentRun& run : runs_) run.reset();
    extents_.reset();
    plan_.reset();
    call_.reset();
}

Status Execution::bind(Mapping mapping) {
    plan_ = call_->prepared->byMapping[static_cast<int>(mapping)];
    ISTHMUS_ASSERT(plan_ != nullptr);
    const bool holdsNothing =
        mapping == Mapping::kRead && plan_->plan.shared.empty() && plan_->plan.scratch.empty();
    const bool isDirect =
        (mapping == Mapping::kAll && call_->prepared->dependsOnNode()) || holdsNothing;
    segments_ = isDirect ? call_->prepared->segmentsWhenMapped : call_->prepared->segments;
    if (plan_->plan.sharedOutlivesCall) segments_ = 1;  // a second one would use its slots again
    window_ = std::clamp(call_->prepared->window, 1, std::min(segments_, kMaxWindow));
    extents_.emplace(plan_->plan, *call_, segments_);
    if (isUneven_ && mapping == Mapping::kShared && call_->prepared->pieceBytes > 0) {
        pieceElements_ =
            std::max<std::size_t>(call_->prepared->pieceBytes / bytesOf(call_->type), 1);
        extents_->cutBlocks(pieceElements_, plan_->positionOf);
        segments_ = passes();
        window_ = std::max(call_->prepared->window, 1);
    }
    isStreaming_ = isStreaming_ && !plan_->usesMessages;
    const bool isInPlace = call_->input == call_->output && call_->input != nullptr;
    if (!plan_->plan.inPlaceSafe && isInPlace && inputCopy_.data == nullptr) {
        ISTHMUS_TRY(replaceInput(extents_->inputBytes()));
        copiesBySegment_ = true;
    }
    ISTHMUS_TRY(grabScratch());
    if (runs_.size() < static_cast<std::size_t>(window_)) runs_.resize(window_);
    return {};
}

Status Execution::copyInput(std::size_t bytes) {
    ISTHMUS_TRY(replaceInput(bytes));
    copyBytes(inputCopy_.data, call_->input, bytes, false);
    return {};
}

/// By memory that holds nothing yet.
Status Execution::replaceInput(std::size_t bytes) {
    // From the pool, whose pages are present: fresh ones would cost more than the copy.
    const auto block = group_.engine().takeScratch(bytes);
    if (!block.ok()) return block.status();
    inputCopy_ = *block;
    input_ = inputCopy_.data;
    return {};
}

/// A pass overwrites what it reads of the input, and nothing of other passes: so each copies its
/// own, while earlier ones are on their way.
void Execution::copyInputOf(int segment) {
    for (int chunk = 0; chunk < extents_->inputChunks(); ++chunk) {
        const std::size_t offset =
            extents_->offsetOf({plan_->plan.me, Buffer::kInput, chunk}, segment);
        copyBytes(inputCopy_.data + offset, call_->input + offset,
                  extents_->inputBytesIn(chunk, segment), false);
    }
}

/// Of my node, for its largest block; one until all have told theirs, which nobody ends before.
int Execution::passes() const {
    std::uint64_t largest = 1;
    for (std::size_t i = 0; i < verified_.size() && unverified_ == 0; ++i)
        largest = std::max(largest, group_.slotOf(static_cast<int>(i), lane_).largestBlock);
    return static_cast<int>((largest + pieceElements_ - 1) / pieceElements_);
}

/// Slots are as large as this rank's largest block wants, since its peers know nothing of the
/// others; of as many passes as it has something for.
std::size_t Execution::layOutShared() {
    const Plan& plan = plan_->plan;
    std::size_t largest = 0;
    std::size_t passes = 1;
    for (const ChunkName& like : plan.shared) {
        const int destination = like.block % plan.ranks;
        if (destination == plan.me) continue;
        largest = std::max(largest, extents_->scratchCapacity(like));
        if (pieceElements_ > 0) {
            const std::size_t elements = call_->counts.sent[destination];
            passes = std::max(passes, (elements + pieceElements_ - 1) / pieceElements_);
        }
    }
    sharedSlotBytes_ = alignUp(largest, 64);
    for (std::size_t i = 0; i < plan.shared.size(); ++i)
        sharedOffsets_.push_back(i * sharedSlotBytes_);
    sharedStride_ = plan.shared.size() * sharedSlotBytes_;
    return sharedStride_ * std::min<std::size_t>(passes, window_);
}

Status Execution::grabScratch() {
    const Plan& plan = plan_->plan;
    const auto layOut = [&](const std::vector<ChunkName>& slots,
                            std::vector<std::size_t>& offsets) {
        std::size_t bytes = 0;
        for (const ChunkName& like : slots) {
            offsets.push_back(bytes);
            bytes = alignUp(bytes + extents_->scratchCapacity(like), 64);
        }
        return bytes;
    };
    scratchStride_ = layOut(plan.scratch, scratchOffsets_);
    if (isUneven_) {
        sharedBytes_ = layOutShared();
    } else {
        sharedStride_ = layOut(plan.shared, sharedOffsets_);
        sharedBytes_ = sharedStride_ * window_;
    }
    if (sharedBytes_ > 0) {
        const auto block = group_.engine().takeScratch(sharedBytes_);
        if (!block.ok()) return block.status();
        sharedBlock_ = *block;
        shared_ = sharedBlock_.data;
    }
    if (scratchStride_ > 0) {
        const auto block = group_.engine().takeScratch(scratchStride_ * window_);
        if (!block.ok()) return block.status();
        scratch_ = *block;
    }
    return {};
}

bool Execution::progress() {
    if (isStopped_ || isDone_) return takeLanded();
    bool isNews = verifyPeers();
    if (isStopped_) return true;
    if (plan_ && plan_->meetsOnce()) {
        if (unverified_ > 0) return isNews;
        meeting_.after(*call_, {call_->input, call_->output, group_.inlineAreas(lane_)});
        isDone_ = true;
        return true;
    }
    if (!plan_) {
        if (!decideMapping()) return isNews;
        isNews = true;
        if (isStopped_ || isDone_) return true;
    }
    while (nextSegment_ < std::min(segments_, window_)) {
        startSegment(runs_[nextSegment_], nextSegment_);
        ++nextSegment_;
        isNews = true;
    }
    isNews |= takeLanded();
    for (SegmentRun& run : runs_) {
        if (isStopped_) return true;
        if (run.segment >= 0) isNews |= progressRun(run);
    }
    // Every node peer must have agreed to the call before it counts as done, even if nothing came
    // from it.
    if (endedSegments_ == segments_ && pending_ == 0 && unverified_ == 0) {
        isDone_ = true;
        isNews = true;
        if (decidedAt_ != Time(0)) {
            group_.readChoice().took(call_->collective, bothBytes_,
                                     plan_->plan.mapping == Mapping::kRead,
                                     group_.engine().now() - decidedAt_);
        }
    }
    return isNews;
}

bool Execution::takeLanded() {
    if (landed_.empty()) return false;
    landing_.clear();
    landing_.swap(landed_);
    for (StepOperation* operation : landing_) {
        --pending_;
        const int slot = operation->slot;
        const int step = operation->step;
        const Status outcome = operation->outcome;
        const bool isToMe = operation->tag.to == group_.me();
        const Rank peer = isToMe ? operation->tag.from : operation->tag.to;
        group_.engine().giveOperation(operation);
        if (isStopped_) continue;
        if (!outcome.ok()) {
            group_.operationFailed(outcome, peer);
            continue;
        }
        if (step < 0) continue;
        SegmentRun& run = runs_[slot];
        if (plan_->plan.steps[step].verb == Verb::kWait) {
            for (auto& waiting : run.waiting) waiting.remote -= waiting.step == step ? 1 : 0;
        } else {
            completeStep(run, step);
            settle(run);
        }
    }
    return true;
}

void Execution::startSegment(SegmentRun& run, int segment) {
    if (copiesBySegment_) copyInputOf(segment);
    run.reset();
    run.segment = segment;
    run.left = static_cast<int>(plan_->nodes.size());
    run.waitsFor.resize(plan_->nodes.size());
    for (std::size_t i = 0; i < plan_->nodes.size(); ++i)
        run.waitsFor[i] = plan_->nodes[i].waitsFor;
    for (const int step : plan_->first) fresh_.push_back(step);
    settle(run);
}

bool Execution::progressRun(SegmentRun& run) {
    bool isNews = pollWaits(run);
    std::size_t bytes = 0;
    while (run.nextReady < run.ready.size() && bytes < kTurnBytes) {
        const int step = run.ready[run.nextReady++];
        if (isBulky_) group_.ring();  // peers need not wait for what follows
        bytes += runHeavy(run, step);
        if (isStopped_) return true;
        completeStep(run, step);
        settle(run);
        isNews = true;
    }
    if (run.left == 0) {
        finishSegment(run);
        isNews = true;
    }
    return isNews;
}

void Execution::finishSegment(SegmentRun& run) {
    const int slot = slotOf(run);
    for (std::size_t i = 0; i < verified_.size(); ++i) {
        const int position = static_cast<int>(i);
        group_.raisedBase(lane_, slot, position) += plan_->signalsTo[i];
        group_.seenBase(lane_, slot, position) += plan_->waitsOn[i];
    }
    ++endedSegments_;
    const int next = run.segment + window_;  // of the same slot, whichever slots are ahead
    run.segment = -1;
    if (next < segments_) startSegment(run, next);
}

bool Execution::pollWaits(SegmentRun& run) {
    bool isNews = false;
    for (std::size_t i = 0; i < run.waiting.size();) {
        if (!isSatisfied(run, run.waiting[i])) {
            ++i;
            continue;
        }
        const int step = run.waiting[i].step;
        run.waiting.erase(run.waiting.begin() + static_cast<std::ptrdiff_t>(i));
        completeStep(run, step);
        settle(run);
        isNews = true;
        i = 0;  // settling may have added waits
    }
    return isNews;
}

bool Execution::isSatisfied(const SegmentRun& run, const SegmentRun::Waiting& waiting) const {
    if (waiting.remote > 0) return false;
    for (const CompiledPlan::Peer& peer : plan_->nodes[waiting.step].peers) {
        if (peer.position >= 0 && !hasRaised(run, peer)) return false;
    }
    return true;
}

bool Execution::hasRaised(const SegmentRun& run, const CompiledPlan::Peer& peer) const {
    if (!verified_[peer.position]) return false;
    const int slot = slotOf(run);
    const std::uint64_t wanted = group_.seenBase(lane_, slot, peer.position) + peer.ordinal + 1;
    const SignalLine& line = group_.onNode(peer.position).block->line(group_.myPosition());
    // Acquire: pairs with the release of raise(); what the peer wrote before it signalled is
    // visible after.
    return line.raised[lane_][slot].load(std::memory_order_acquire) >= wanted;
}

void Execution::settle(SegmentRun& run) {
    while (!fresh_.empty()) {
        const int step = fresh_.back();
        fresh_.pop_back();
        makeReady(run, step);
    }
}

void Execution::completeStep(SegmentRun& run, int step) {
    --run.left;
    for (const int next : plan_->nodes[step].next) {
        if (--run.waitsFor[next] == 0) fresh_.push_back(next);
    }
}

void Execution::makeReady(SegmentRun& run, int step) {
    switch (plan_->plan.steps[step].verb) {
    case Verb::kSend:
    case Verb::kRecv:
        post(run, step);
        break;
    case Verb::kSignal:
        raise(run, step);
        completeStep(run, step);
        break;
    case Verb::kWait:
        beginWait(run, step);
        break;
    case Verb::kCopy:
    case Verb::kReduce:
        if (plan_->nodes[step].isFused) {
            completeStep(run, step);
        } else {
            run.ready.push_back(step);
        }
        break;
    }
}

void Execution::landed(Operation& operation, const Status& status) {
    auto& mine = static_cast<StepOperation&>(operation);
    mine.outcome = status;
    mine.execution->landed_.push_back(&mine);
    auto& flying = mine.execution->flying_;
    const auto at = std::find(flying.begin(), flying.end(), &mine);
    if (at != flying.end()) {
        *at = flying.back();
        flying.pop_back();
    }
}

}  // namespace isthmus
