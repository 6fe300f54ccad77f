// What a Membership does as time passes: losses, deadlines, and who is to blame.
#include <algorithm>

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
    if (!active_.empty() && now - probedAt_ >= probeEvery()) {
        if (probedAt_ != Time{0}) probe(*active_.front(), now);
        probedAt_ = now;
    }
    return false;
}

Time Membership::probeEvery() const {
    return std::clamp(active_.front()->call().limit / kProbesPerLimit, kCheckEvery, kProbeEvery);
}

// Why `rank` is to blame for the call's delay, if it is: who waits for others itself is not.
std::string Membership::accusationOf(Rank rank, const Execution& execution, Time now) const {
    const Member& other = member(rank);
    if (other.position >= 0 && !execution.hasVerified(other.position)) {
        return " which has not entered the call";
    }
    if (other.probedFor != execution.sequence()) return "";
    if (other.silentSince != Time{0} && now - other.silentSince >= kAnswerPatience) {
        return " which does not answer";
    }
    const bool isMissing = other.hasAnswered && other.entered <= execution.sequence();
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

void Membership::probe(Execution& execution, Time now) {
    std::vector<Rank> awaited;
    (void)execution.standing(awaited);
    for (const Rank rank : awaited) {
        if (rank == me()) continue;
        Member& other = config_.members[rank];
        if (other.probedFor != execution.sequence()) {
            other.probedFor = execution.sequence();
            other.hasAnswered = false;
            other.silentSince = Time{0};
        }
        if (other.silentSince == Time{0}) other.silentSince = now;
        engine_.sendProbe(*this, rank, execution.sequence(), execution.fingerprint());
    }
}

void Membership::answered(Rank from, std::uint64_t entered) {
    Member& other = config_.members[from];
    other.hasAnswered = true;
    other.silentSince = Time{0};
    other.entered = entered;
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
    if (!active_.empty()) next = std::min(next, checkedAt_ + probeEvery());
    if (!isIdle() && !departures_.empty())
        next = std::min(next, departures_.front().since + kHoldLoss);
    return std::max(next, nextLook);
}

}  // namespace isthmus
