// How a call becomes known to the node, and how the node's ranks learn that all are in it.
#include <algorithm>

#include "comm/base/assert.hpp"
#include "comm/engine/engine.hpp"
#include "comm/engine/execution.hpp"
#include "comm/engine/membership.hpp"
#include "comm/reduce/reducer.hpp"

namespace isthmus {

namespace {

// Calls of fewer bytes on the node wake their peers when a turn ends: no work in it takes longer
// than a bell.
constexpr std::size_t kBulkyBytes = std::size_t{64} << 10;

// Two ranks with 16 MiB for both their caches: all-gather of 16 MiB (64 MiB in all) 1.5 ms read and
// 2.0 ms staged.
constexpr std::size_t kReadInCaches = 8;

}  // namespace

Status Execution::enter() {
    const PreparedPlans& prepared = *call_->prepared;
    const auto& plans = prepared.byMapping;
    const auto& any = plans[0] ? plans[0] : plans[1] ? plans[1] : plans[2];
    if (any->meetsOnce()) return enterMeeting(any);
    const auto& reading = prepared.of(Mapping::kRead);
    const Extents whole(any->plan, *call_, 1);
    bool isInPlace = call_->input == call_->output && call_->input != nullptr;
    // Where blocks lie elsewhere in the output, any of them may be overwritten by any other.
    if (isInPlace && call_->counts.sent != call_->counts.received && whole.inputBytes() > 0) {
        ISTHMUS_TRY(copyInput(whole.inputBytes()));
        isInPlace = false;
    }
    const auto offset = [&](const std::byte* buffer, std::size_t bytes) {
        return bytes == 0 ? 0 : group_.engine().mappedOffset(buffer, bytes);
    };
    if (plans[2] && (plans[2]->plan.inPlaceSafe || !isInPlace)) {
        inputOffset_ = offset(input_, whole.inputBytes());
        outputOffset_ = offset(call_->output, whole.outputBytes());
    }
    const bool isMapped = inputOffset_ != kNotMapped && outputOffset_ != kNotMapped;
    if (!isMapped) inputOffset_ = outputOffset_ = kNotMapped;
    bothBytes_ = whole.inputBytes() + whole.outputBytes();
    const std::size_t footprint = bothBytes_ * group_.nodeRanks().size();
    isStreaming_ = footprint > group_.cacheBytes();
    isBulky_ = footprint > kBulkyBytes;
    // Far beyond the caches staging keeps its windows in them, and reading goes by memory; to try
    // which is quicker would take long.
    const bool isHuge = footprint > kReadInCaches * group_.cacheBytes();
    canBeRead_ =
        reading && group_.canRead() && !isHuge && (reading->plan.inPlaceSafe || !isInPlace);
    const bool choosesWay = canBeRead_ && !isMapped && group_.myPosition() == 0;
    const bool prefersReading =
        choosesWay && group_.readChoice().prefersReading(call_->collective, bothBytes_);

    if (isUneven_) {
        tellBlocks();
        showInput(whole.inputBytes());
    }
    if (!prepared.dependsOnNode()) {
        ISTHMUS_TRY(bind(plans[0] ? Mapping::kNone : plans[1] ? Mapping::kShared : Mapping::kAll));
    } else if (!isMapped && !canBeRead_ && !isShown_) {
        ISTHMUS_TRY(bind(Mapping::kShared));  // no need to wait for anybody: all will stage
    }
    CallSlot& slot = group_.slotOf(group_.myPosition(), lane_);
    slot.inputAddress = reinterpret_cast<std::uintptr_t>(input_);
    slot.canBeRead = canBeRead_;
    slot.prefersReading = prefersReading;
    slot.inputOffset = inputOffset_;
    slot.outputOffset = outputOffset_;
    slot.sharedOffset = kNotMapped;
    tellShared();
    publish();
    return {};
}

void Execution::tellBlocks() {
    CallSlot& slot = group_.slotOf(group_.myPosition(), lane_);
    const std::vector<std::size_t>& sent = call_->counts.sent;
    const std::vector<std::size_t>& received = call_->counts.received;
    const std::size_t width = bytesOf(call_->type);
    slot.largestBlock = 0;
    std::uint64_t offset = 0;
    for (Rank rank = 0; rank < group_.ranks(); ++rank) {
        const int position = group_.member(rank).position;
        if (position >= 0) {
            slot.blocks()[position] = {offset, sent[rank] * width, received[rank] * width};
            slot.largestBlock =
                std::max<std::uint64_t>({slot.largestBlock, sent[rank], received[rank]});
        }
        offset += sent[rank] * width;
    }
}

void Execution::tellShared() {
    if (sharedBlock_.data == nullptr) return;
    CallSlot& slot = group_.slotOf(group_.myPosition(), lane_);
    slot.sharedOffset = group_.engine().mappedOffset(shared_, sharedBytes_);
    slot.sharedSlotBytes = sharedSlotBytes_;
}

/// Where all inputs of an all-to-all with counts are small, nobody has to meet again: the way of
/// "inline", which no rank could choose before it knows the others' sizes.
void Execution::showInput(std::size_t bytes) {
    const int nodeRanks = static_cast<int>(verified_.size());
    const bool isOneNode = group_.ranks() == nodeRanks && call_->prepared->dependsOnNode();
    CallSlot& slot = group_.slotOf(group_.myPosition(), lane_);
    isShown_ = isOneNode && bytes <= static_cast<std::uint64_t>(group_.inlineLimit());
    slot.isShown = isShown_;
    if (!isShown_) return;
    isBulky_ = false;
    if (bytes > 0) copyBytes(slot.shownInput(nodeRanks), input_, bytes, false);
}

bool Execution::areAllShown() const {
    for (std::size_t i = 0; i < verified_.size() && isShown_; ++i) {
        if (!group_.slotOf(static_cast<int>(i), lane_).isShown) return false;
    }
    return isShown_;
}

void Execution::takeShown() {
    const int nodeRanks = static_cast<int>(verified_.size());
    std::size_t at = 0;
    for (Rank rank = 0; rank < group_.ranks(); ++rank) {
        CallSlot& slot = group_.slotOf(group_.member(rank).position, lane_);
        const BlockNotice& block = slot.blocks()[group_.myPosition()];
        if (block.sent > 0)
            copyBytes(call_->output + at, slot.shownInput(nodeRanks) + block.inputOffset,
                      block.sent, false);
        at += block.sent;
    }
    isDone_ = true;
}

void Execution::hasEnteredBefore() {
    const auto& plans = call_->prepared->byMapping;
    plan_ = plans[0] ? plans[0] : plans[1] ? plans[1] : plans[2];
    ISTHMUS_ASSERT(plan_->meetsOnce());
    isBulky_ = false;
    meeting_.bind(plan_, *call_);
}

// The slot that tells of the call also says that what it shows is there, so nothing is signalled.
Status Execution::enterMeeting(const std::shared_ptr<const CompiledPlan>& plan) {
    plan_ = plan;
    isBulky_ = false;
    meeting_.bind(plan_, *call_);
    if (meeting_.sharedBytes() > group_.inlineBytes()) {
        return Status::internal("an inline call of " + std::to_string(meeting_.sharedBytes()) +
                                " bytes does not fit its lane of " +
                                std::to_string(group_.inlineBytes()));
    }
    meeting_.before(*call_, {call_->input, call_->output, group_.inlineAreas(lane_)});
    publish();
    return {};
}

void Execution::publish() {
    CallSlot& slot = group_.slotOf(group_.myPosition(), lane_);
    slot.fingerprint = fingerprint_;
    slot.sequence.store(sequence_ + 1, std::memory_order_release);
    group_.noteNews();
}

bool Execution::hasEntered(int position) const {
    // Acquire: pairs with publish().
    return group_.slotOf(position, lane_).sequence.load(std::memory_order_acquire) == sequence_ + 1;
}

bool Execution::verifyPeers() {
    bool isNews = false;
    for (std::size_t i = 0; i < verified_.size() && unverified_ > 0; ++i) {
        if (verified_[i]) continue;
        if (!hasEntered(static_cast<int>(i))) continue;
        const CallSlot& slot = group_.slotOf(static_cast<int>(i), lane_);
        if (slot.fingerprint != fingerprint_) {
            group_.mismatch(*this, group_.nodeRanks()[i], slot.fingerprint);
            return true;
        }
        if (isUneven_ && !group_.areBlocksEqual(*this, static_cast<int>(i))) return true;
        verified_[i] = 1;
        --unverified_;
        isNews = true;
    }
    if (isNews && unverified_ == 0 && pieceElements_ > 0) segments_ = passes();
    return isNews;
}

/// My buffers are not mapped and the node's first rank does not want them read: no need to wait
/// for the others. The first itself waits while it tries which way is quicker.
bool Execution::mustStage() const {
    if (isShown_ || inputOffset_ != kNotMapped || !verified_[0]) return false;
    if (group_.slotOf(0, lane_).prefersReading) return false;
    return group_.myPosition() != 0 || group_.readChoice().isSettled(call_->collective, bothBytes_);
}

/// What the slots of all say; every rank of the node finds the same.
Mapping Execution::agreedMapping() const {
    bool allMapped = true;
    bool allRead = group_.slotOf(0, lane_).prefersReading;
    for (std::size_t i = 0; i < verified_.size(); ++i) {
        const CallSlot& slot = group_.slotOf(static_cast<int>(i), lane_);
        allMapped &= slot.inputOffset != kNotMapped;
        allRead &= slot.canBeRead;
    }
    if (allMapped) return Mapping::kAll;
    return allRead ? Mapping::kRead : Mapping::kShared;
}

bool Execution::decideMapping() {
    if (unverified_ > 0 && !mustStage()) return false;
    if (areAllShown()) {
        takeShown();
        return true;
    }
    const Mapping mapping = unverified_ > 0 ? Mapping::kShared : agreedMapping();
    if (canBeRead_ && inputOffset_ == kNotMapped && group_.myPosition() == 0) {
        decidedAt_ = group_.engine().now();
        if (group_.slotOf(0, lane_).prefersReading && mapping != Mapping::kRead)
            group_.readChoice().couldNotRead(call_->collective, bothBytes_);
    }
    if (Status status = bind(mapping); !status.ok()) {
        group_.fail(std::move(status));
        return true;
    }
    // Where I could have run directly and a peer could not, the slot is out already, so the offset
    // follows it. Peers wait for my first signal before they look at it.
    tellShared();
    return true;
}

}  // namespace isthmus
