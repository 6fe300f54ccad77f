// How a Membership finds that ranks do not mean the same call: from what others say of it before,
// while and after this rank is in it.
#include <algorithm>

#include "comm/engine/engine.hpp"
#include "comm/engine/membership.hpp"

namespace isthmus {

void Membership::remember(const Execution& execution) {
    Past& past = past_[execution.sequence() % kPast];
    const CallRequest& call = execution.call();
    past.sequence = execution.sequence();
    past.fingerprint = execution.fingerprint();
    past.title = call.name.empty() ? "" : title(call, execution.sequence());
    past.sent.clear();
    past.received.clear();
    if (call.counts.sent.empty()) return;
    for (Rank rank = 0; rank < ranks(); ++rank) {
        past.sent.push_back(blockBytes(call, rank, true));
        past.received.push_back(blockBytes(call, rank, false));
    }
}

std::string Membership::titleOf(const Past& past) const {
    if (!past.title.empty()) return past.title;
    CallRequest call;
    call.collective = static_cast<Collective>(past.fingerprint.collective);
    return title(call, past.sequence);
}

// False, and a failure, when `other` has another size in mind for the block between it and me.
bool Membership::areBlocksEqual(const Past& past, Rank other, bool isSent, std::uint64_t theirs) {
    const auto& blocks = isSent ? past.sent : past.received;
    if (blocks.empty() || blocks[other] == theirs) return true;
    const auto bytes = [](std::uint64_t count) { return std::to_string(count) + " bytes"; };
    const std::string type(isthmus::nameOf(static_cast<DataType>(past.fingerprint.type)));
    const std::string sender = nameOf(isSent ? me() : other);
    const std::string receiver = nameOf(isSent ? other : me());
    fail(Status::mismatch(titleOf(past) + ": ranks disagree on the call: " + sender +
                          " calls all_to_all " + type + " with " +
                          bytes(isSent ? blocks[other] : theirs) + " for " + receiver + ", which " +
                          "calls all_to_all " + type + " with " +
                          bytes(isSent ? theirs : blocks[other]) + " from it"));
    return false;
}

bool Membership::areBlocksEqual(const Execution& execution, int position) {
    const std::uint64_t sequence = execution.sequence();
    const Past& past = past_[sequence % kPast];
    const CallSlot& slot = slotOf(position, static_cast<int>(sequence % kLanes));
    const BlockNotice& theirs = slot.blocks()[myPosition()];
    const Rank other = nodeRanks_[position];
    return areBlocksEqual(past, other, false, theirs.sent) &&
           areBlocksEqual(past, other, true, theirs.received);
}

// False, and a failure, when a rank that entered the call before said something else of it.
bool Membership::isAgreed(const Execution& execution) {
    if (early_.empty()) return true;
    const Past& now = past_[execution.sequence() % kPast];
    const auto [from, to] = early_.equal_range(execution.sequence());
    for (auto it = from; it != to; ++it) {
        const Early& early = it->second;
        if (early.fingerprint != execution.fingerprint()) {
            mismatch(execution, early.from, early.fingerprint);
            return false;
        }
        if (early.wanted && !areBlocksEqual(now, early.from, true, *early.wanted)) return false;
        if (early.sent && !areBlocksEqual(now, early.from, false, *early.sent)) return false;
    }
    early_.erase(from, to);
    return true;
}

void Membership::announced(Rank from, const MessageTag& tag, const CallFingerprint& fingerprint,
                           std::uint64_t bytes) {
    if (!failure_.ok() || tag.pointToPoint) return;
    const bool isBlock = tag.channel != kSignalChannel;
    const bool isWanted = tag.from == me() && from != me();
    if (tag.sequence >= nextSequence_) {
        const auto [first, last] = early_.equal_range(tag.sequence);
        auto known =
            std::find_if(first, last, [&](const auto& e) { return e.second.from == from; });
        if (known == last) known = early_.emplace(tag.sequence, Early{from, fingerprint, {}, {}});
        if (isBlock) (isWanted ? known->second.wanted : known->second.sent) = bytes;
        return;
    }
    const Past& past = past_[tag.sequence % kPast];
    if (past.sequence != tag.sequence) return;
    if (past.fingerprint == fingerprint) {
        if (isBlock) (void)areBlocksEqual(past, from, isWanted, bytes);
        return;
    }
    // It may be over here: a call of no bytes, say, when a peer begins another one in its place.
    disagree(titleOf(past), past.fingerprint, from, fingerprint);
}

void Membership::probed(Rank from, std::uint64_t sequence, const CallFingerprint& fingerprint,
                        std::uint64_t wanted) {
    if (sequence != kNoCall) {
        MessageTag tag;
        tag.sequence = sequence;
        tag.from = static_cast<std::uint16_t>(me());
        if (wanted == 0) tag.channel = kSignalChannel;  // it says nothing of blocks
        announced(from, tag, fingerprint, wanted);
    }
    if (isLeaving_) {
        asked(from);
    } else {
        engine_.sendAnswer(*this, from, nextSequence_, !active_.empty());
    }
}

void Membership::mismatch(const Execution& execution, Rank other, const CallFingerprint& theirs) {
    disagree(title(execution.call(), execution.sequence()), execution.fingerprint(), other, theirs);
}

void Membership::disagree(const std::string& title, const CallFingerprint& mine, Rank other,
                          const CallFingerprint& theirs) {
    const Contrast calls = contrast(mine, theirs, config_.globalRanks);
    fail(Status::mismatch(title + ": ranks disagree on the call: " + nameOf(me()) + " calls " +
                          calls.mine + ", " + nameOf(other) + " calls " + calls.theirs +
                          calls.hint));
}

}  // namespace isthmus
