// What a Membership does as time passes: losses, deadlines, and who is to blame.
#include <algorithm>

#include "comm/base/log.hpp"
#include "comm/engine/engine.hpp"
#include "comm/engine/membership.hpp"

namespace isthmus {

namespace {

// A stuck call asks those it waits for where they are, this often, and at least so many times
// before its deadline.
constexpr Time kProbeEvery = std::chrono::milliseconds(250);
constexpr int kProbesPerLimit = 8;

// A live process answers in well under a millisecond, on an overloaded machine in some tens.
constexpr Time kAnswerPatience = std::chrono::milliseconds(100);

// Who has answered nothing for so long is named in the log: some of its process's threads always
// answer, whatever the program does, unless it is stopped or out of reach. Timers of a loaded
// machine are some tens of milliseconds late, so this is no false alarm.
constexpr Time kSuspectAfter = std::chrono::milliseconds(1000);

// What a rank has done its part in before it gave up can end well here too, and soon: its bytes are
// on their way. A mismatch may wait for that, since nobody is gone; a loss is to be heard of at
// once.
constexpr Time kHoldMismatch = std::chrono::milliseconds(300);
constexpr Time kHoldOther = std::chrono::milliseconds(20);

Time patienceOf(const Status& verdict) {
    return verdict.code() == Status::Code::kMismatch ? kHoldMismatch : kHoldOther;
}

// At the deadline, a rank that waits for ranks that wait themselves lets those speak first who know
// the one to blame.
constexpr Time kHoldVerdict = std::chrono::milliseconds(300);

std::int64_t millisecondsOf(Time time) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
}

}  // namespace

bool Membership::checkTime(Time now) {
    checkedAt_ = now;
    for (const Departure& departure : departures_) {
        if (now - departure.since >= kHoldLoss) {
            fail(departure.why);
            return true;
        }
    }
    for (const auto& execution : active_) {
        if (now >= execution->call().deadline && expire(*execution, now)) return true;
    }
    for (const auto& call : queued_) {
        if (now < call->deadline) continue;
        fail(Status::timeout(title(*call, nextSequence_) + ": not begun after " +
                             std::to_string(millisecondsOf(call->limit)) +
                             " ms, the calls before it were not done"));
        return true;
    }
    if (!isIdle() && now - probedAt_ >= probeEvery()) {
        if (probedAt_ != Time{0}) probe(now);
        probedAt_ = now;
    }
    return false;
}

Time Membership::probeEvery() const {
    if (active_.empty()) return kProbeEvery;
    return std::clamp(active_.front()->call().limit / kProbesPerLimit, kCheckEvery, kProbeEvery);
}

bool Membership::isSilent(Rank rank, Time now) const {
    const Time since = member(rank).silentSince;
    return since != Time{0} && now - since >= kAnswerPatience;
}

// Why `rank` is to blame for the call's delay, if it is: who waits for others itself is not.
std::string Membership::accusationOf(Rank rank, const Execution& execution, Time now) const {
    const Member& other = member(rank);
    const bool hasAnswered = other.probedFor == execution.sequence() && other.hasAnswered;
    const bool isMissing = hasAnswered && other.entered <= execution.sequence();
    // In an earlier call: those that it waits for are to blame.
    if (isMissing && other.isInside && !isSilent(rank, now)) return "";
    if (other.position >= 0 && !execution.hasVerified(other.position)) {
        return " which has not entered the call";
    }
    if (other.probedFor != execution.sequence()) return "";
    if (isSilent(rank, now)) return " which does not answer";
    return isMissing ? " which has not entered the call" : "";
}

std::string Membership::unfinished(Time now) const {
    if (active_.empty() && queued_.empty())
        return pointToPoint_.isIdle() ? "nothing" : pointToPoint_.unfinished();
    if (active_.empty()) return title(*queued_.front(), nextSequence_) + ", not begun";
    const Execution& first = *active_.front();
    std::vector<Rank> awaited;
    (void)first.standing(awaited);
    std::string text = title(first.call(), first.sequence());
    for (const Rank rank : awaited) {
        text += (rank == awaited.front() ? " and in it for " : ", ") + nameOf(rank) +
                accusationOf(rank, first, now);
    }
    return text;
}

bool Membership::expire(Execution& execution, Time now) {
    std::vector<Rank> awaited;
    const std::string standing = execution.standing(awaited);
    std::string everybody;
    std::string guilty;
    for (const Rank rank : awaited) {
        everybody += (everybody.empty() ? "" : ", ") + nameOf(rank);
        const std::string accusation = accusationOf(rank, execution, now);
        if (accusation.empty()) continue;
        guilty += (guilty.empty() ? "" : ", ") + nameOf(rank) + accusation;
    }
    const CallRequest& call = execution.call();
    if (guilty.empty() && now < call.deadline + kHoldVerdict) return false;
    if (everybody.empty()) everybody = "nobody";
    const Time ran = call.limit + (now - call.deadline);
    fail(Status::timeout(title(call, execution.sequence()) + ": " + nameOf(me()) + " gave up on " +
                         (guilty.empty() ? everybody : guilty) + " after " +
                         std::to_string(millisecondsOf(ran)) + " ms of " +
                         std::to_string(millisecondsOf(call.limit)) + " ms, " + standing));
    return true;
}

void Membership::probe(Time now) {
    std::vector<Rank> awaited;
    if (!active_.empty()) {
        const Execution& first = *active_.front();
        (void)first.standing(awaited);
        for (const Rank rank : awaited) probe(rank, &first, now);
    }
    for (const Rank rank : pointToPoint_.awaited()) {
        if (std::count(awaited.begin(), awaited.end(), rank) == 0) probe(rank, nullptr, now);
    }
    suspect(now);
}

// Null: it is waited for in no collective.
void Membership::probe(Rank rank, const Execution* execution, Time now) {
    if (rank == me()) return;
    Member& other = config_.members[rank];
    const std::uint64_t call = execution != nullptr ? execution->sequence() : kNoCall;
    if (other.probedFor != call) {
        other.probedFor = call;
        other.hasAnswered = false;
        other.silentSince = Time{0};
    }
    if (other.silentSince == Time{0}) other.silentSince = now;
    const bool hasCounts = execution != nullptr && !execution->call().counts.sent.empty();
    engine_.sendProbe(*this, rank, call,
                      execution != nullptr ? execution->fingerprint() : CallFingerprint(),
                      hasCounts ? blockBytes(execution->call(), rank, false) : 0);
}

void Membership::suspect(Time now) {
    for (Rank rank = 0; rank < ranks(); ++rank) {
        Member& other = config_.members[rank];
        if (other.isSuspect || other.silentSince == Time{0} || other.hasStopped) continue;
        if (now - other.silentSince < kSuspectAfter) continue;
        other.isSuspect = true;
        const std::string what = active_.empty()
                                     ? unfinished(now)
                                     : title(active_.front()->call(), active_.front()->sequence());
        log(LogLevel::kWarning,
            nameOf(rank) + " is unresponsive: no answer for " +
                std::to_string(millisecondsOf(now - other.silentSince)) +
                " ms (stopped, or its machine is out of reach); it is waited for in " + what);
    }
}

void Membership::answered(Rank from, std::uint64_t entered, bool isInside) {
    Member& other = config_.members[from];
    if (std::exchange(other.isSuspect, false)) {
        log(LogLevel::kWarning,
            nameOf(from) + " answers again, after " +
                std::to_string(millisecondsOf(engine_.now() - other.silentSince)) + " ms");
    }
    other.hasAnswered = true;
    other.silentSince = Time{0};
    other.entered = entered;
    other.isInside = isInside;
}

// True, and failed, when nothing is left here that the held verdict does not concern.
bool Membership::settleHeld(Time now) {
    if (!held_) return false;
    const bool isOpen = doneBelow() < held_->below && !(active_.empty() && queued_.empty());
    if (isOpen && now - held_->since < patienceOf(held_->verdict)) return false;
    fail(held_->verdict);
    return true;
}

Time Membership::nextDeadline() const {
    // Neither is to be looked at without a pause: a verdict may be held, a message be on its way
    // back.
    const Time nextLook = checkedAt_ + kCheckEvery;
    if (!failure_.ok()) {
        return active_.empty() ? Time::max() : std::max(failedAt_ + kStopPatience, nextLook);
    }
    Time next = pointToPoint_.nextDeadline();
    for (const auto& execution : active_) next = std::min(next, execution->call().deadline);
    for (const auto& call : queued_) next = std::min(next, call->deadline);
    if (!isIdle()) next = std::min(next, checkedAt_ + probeEvery());
    if (!isIdle() && !departures_.empty())
        next = std::min(next, departures_.front().since + kHoldLoss);
    if (held_) next = std::min(next, held_->since + patienceOf(held_->verdict));
    return std::max(next, nextLook);
}

}  // namespace isthmus
