// Blocking calls that meet once, from their entry to their end without an Execution.
#include <algorithm>
#include <utility>

#include "comm/base/assert.hpp"
#include "comm/engine/engine.hpp"
#include "comm/engine/membership.hpp"

namespace isthmus {

namespace {

// Kinds of small calls that a communicator keeps: a training step has a handful.
constexpr std::size_t kMostKnown = 16;

}  // namespace

CallRequest QuickCall::request() const {
    CallRequest call;
    call.collective = kind.collective;
    call.type = kind.type;
    call.op = kind.op;
    call.root = kind.root;
    call.counts.uniform = kind.count;
    call.input = input;
    call.output = output;
    return call;
}

QuickCalls::Known& QuickCalls::find(const QuickCall::Kind& kind) {
    if (last_ < known_.size() && known_[last_]->kind == kind) return *known_[last_];
    const auto at = std::find_if(known_.begin(), known_.end(),
                                 [&](const auto& known) { return known->kind == kind; });
    last_ = static_cast<std::size_t>(at - known_.begin());
    if (at != known_.end()) return **at;
    if (known_.size() < kMostKnown) {
        known_.push_back(std::make_unique<Known>());
    } else {
        last_ = next_;
        next_ = (next_ + 1) % kMostKnown;
        *known_[last_] = Known();
    }
    known_[last_]->kind = kind;
    return *known_[last_];
}

void QuickCalls::learn(const QuickCall::Kind& kind, CallRequest like, bool mayBeQuick) {
    Known& known = find(kind);
    known.isLearnt = true;
    const auto& plans = like.prepared->byMapping;
    const auto& plan = plans[0] ? plans[0] : plans[1] ? plans[1] : plans[2];
    known.isQuick = mayBeQuick && plan->meetsOnce();
    if (!known.isQuick) return;
    known.fingerprint = like.fingerprint();
    known.meeting.bind(plan, like);
    known.like = std::move(like);
    known.like.input = nullptr;
    known.like.output = nullptr;
}

void Membership::learn(const QuickCall::Kind& kind, CallRequest like, bool mayBeQuick) {
    quickCalls_.learn(kind, std::move(like), mayBeQuick);
}

// Whatever is out of the ordinary is for the way of all calls.
Quick Membership::enterQuickly(const QuickCall& call) {
    if (!failure_.ok() || !isIdle() || isLeaving_ || firstLeft_ >= 0 || held_ || !early_.empty())
        return Quick::kNotNow;
    if (nodeRanks_.size() != config_.members.size() || nodeRanks_.size() == 1)
        return Quick::kNotNow;
    QuickCalls::Known& known = quickCalls_.find(call.kind);
    if (!known.isLearnt) return std::exchange(known.isSeen, true) ? Quick::kLearn : Quick::kNotNow;
    if (!known.isQuick || known.meeting.sharedBytes() > config_.inlineBytes || !isLaneFree())
        return Quick::kNotNow;

    quick_ = {&known, call.input, call.output, nextSequence_, 0};
    const int lane = static_cast<int>(nextSequence_ % kLanes);
    known.meeting.before(known.like, {call.input, call.output, inlineAreas(lane)});
    CallSlot& slot = slotOf(myPosition(), lane);
    slot.fingerprint = known.fingerprint;
    // Release: pairs with the peers' acquire, here and in Execution::hasEntered().
    slot.sequence.store(nextSequence_ + 1, std::memory_order_release);
    noteNews();
    Past& past = past_[nextSequence_ % kPast];
    past.sequence = nextSequence_;
    past.fingerprint = known.fingerprint;
    past.title.clear();
    past.sent.clear();
    past.received.clear();
    ++nextSequence_;
    return Quick::kEntered;
}

bool Membership::endQuickly() {
    const int lane = static_cast<int>(quick_.sequence % kLanes);
    for (; quick_.met < nodeRanks_.size(); ++quick_.met) {
        const CallSlot& slot = slotOf(static_cast<int>(quick_.met), lane);
        if (slot.sequence.load(std::memory_order_acquire) != quick_.sequence + 1) return false;
        if (slot.fingerprint != quick_.known->fingerprint) return false;  // adopt(), which says so
    }
    quick_.known->meeting.after(quick_.known->like,
                                {quick_.input, quick_.output, inlineAreas(lane)});
    // Release: pairs with isLaneFree() of the peers.
    myBlock().finished.store(nextSequence_, std::memory_order_release);
    noteNews();
    ring();
    return true;
}

Awaited Membership::awaitedQuickly(int cpu) {
    tellCpu(cpu);
    const int lane = static_cast<int>(quick_.sequence % kLanes);
    auto found = Awaited::kNobody;
    for (std::size_t i = quick_.met; i < nodeRanks_.size(); ++i) {
        const int position = static_cast<int>(i);
        if (slotOf(position, lane).sequence.load(std::memory_order_relaxed) == quick_.sequence + 1)
            continue;
        const bool isHere = onNode(position).block->cpu.load(std::memory_order_relaxed) == cpu;
        found = std::max(found, isHere ? Awaited::kHere : Awaited::kElsewhere);
    }
    return found;
}

void Membership::adopt(std::unique_ptr<CallRequest> call) {
    ISTHMUS_ASSERT(active_.empty() && nextSequence_ == quick_.sequence + 1);
    call->prepared = quick_.known->like.prepared;
    call->isDeterministic = quick_.known->like.isDeterministic;
    std::unique_ptr<Execution> execution = takeExecution();
    execution->begin(std::move(call), quick_.sequence);
    execution->hasEnteredBefore();
    active_.push_back(std::move(execution));
}

}  // namespace isthmus
