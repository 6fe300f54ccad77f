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

// The first time later: most calls that wait so long only wait for ranks that are late.
constexpr Time kProbeFirst = std::chrono::milliseconds(500);

// At once; where more are waited for, in turn. Each of 256 late ranks of a node would else be asked
// by all that are there: that doubled the time of their start.
constexpr std::size_t kProbedTogether = 32;

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
// the one to blame; one that comes to look so much later was stopped, and what others said
// meanwhile is still to be read.
constexpr Time kHoldVerdict = std::chrono::milliseconds(300);

// More of them are counted only: a machine that stands still makes hundreds at once.
constexpr std::size_t kNamedTogether = 8;

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
    if (!held_ && checkDeadlines(now)) return true;  // who is held knows more
    if (!isIdle() && now - probedAt_ >= probeEvery()) {
        if (probedAt_ != Time{0} && isProbeDue(now)) probe(now);
        probedAt_ = now;
    }
    return false;
}

bool Membership::isProbeDue(Time now) const {
    if (active_.empty()) return true;
    const CallRequest& call = active_.front()->call();
    return now - (call.deadline - call.limit) >=
           std::min(call.limit / kProbesPerLimit, kProbeFirst);
}

bool Membership::checkDeadlines(Time now) {
    const auto isOverdue = [&](const auto& execution) { return now >= execution->call().deadline; };
    if (std::any_of(active_.begin(), active_.end(), isOverdue)) {
        if (overdueSince_ == Time{0}) overdueSince_ = now;
        for (const auto& execution : active_) {
            if (isOverdue(execution) && expire(*execution, now)) return true;
        }
        return false;  // those behind them wait with them
    }
    overdueSince_ = Time{0};
    for (const auto& call : queued_) {
        if (now < call->deadline) continue;
        fail(Status::timeout(title(*call, nextSequence_) + ": not begun after " +
                             std::to_string(millisecondsOf(call->limit)) +
                             " ms, the calls before it were not done"));
        return true;
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
    const bool wasStopped = overdueSince_ >= call.deadline + kHoldVerdict;
    if ((guilty.empty() || wasStopped) && now < overdueSince_ + kHoldVerdict) return false;
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
    if (!active_.empty()) (void)active_.front()->standing(awaited);
    const std::size_t inCall = awaited.size();
    for (const Rank rank : pointToPoint_.awaited()) {
        if (std::count(awaited.begin(), awaited.end(), rank) == 0) awaited.push_back(rank);
    }
    const std::size_t asked = std::min(awaited.size(), kProbedTogether);
    for (std::size_t i = 0; i < asked; ++i) {
        const std::size_t at = nextProbed_++ % awaited.size();
        probe(awaited[at], at < inCall ? active_.front().get() : nullptr, now);
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
    std::vector<Rank> silent;
    Time longest{0};
    for (Rank rank = 0; rank < ranks(); ++rank) {
        Member& other = config_.members[rank];
        if (other.isSuspect || other.silentSince == Time{0} || other.hasStopped) continue;
        if (now - other.silentSince < kSuspectAfter) continue;
        other.isSuspect = true;
        longest = std::max(longest, now - other.silentSince);
        silent.push_back(rank);
    }
    if (silent.empty()) return;
    const std::string what = active_.empty()
                                 ? unfinished(now)
                                 : title(active_.front()->call(), active_.front()->sequence());
    log(LogLevel::kWarning,
        namesOf(silent) + (silent.size() == 1 ? " is" : " are") + " unresponsive: no answer for " +
            std::to_string(millisecondsOf(longest)) +
            " ms (stopped, or the machine is out of reach); waited for in " + what);
}

std::string Membership::namesOf(const std::vector<Rank>& ranks) const {
    std::string text;
    const std::size_t named = std::min(ranks.size(), kNamedTogether);
    for (std::size_t i = 0; i < named; ++i) text += (i == 0 ? "" : ", ") + nameOf(ranks[i]);
    if (named == ranks.size()) return text;
    return text + " and " + std::to_string(ranks.size() - named) + " more ranks";
}

void Membership::answered(Rank from, std::uint64_t entered, bool isInside) {
    Member& other = config_.members[from];
    if (std::exchange(other.isSuspect, false)) {
        longestSilence_ = std::max(longestSilence_, engine_.now() - other.silentSince);
        returned_.push_back(from);
    }
    other.hasAnswered = true;
    other.silentSince = Time{0};
    other.entered = entered;
    other.isInside = isInside;
}

void Membership::welcomeBack() {
    if (returned_.empty()) return;
    log(LogLevel::kWarning, namesOf(returned_) + (returned_.size() == 1 ? " answers" : " answer") +
                                " again, after " + std::to_string(millisecondsOf(longestSilence_)) +
                                " ms");
    returned_.clear();
    longestSilence_ = Time{0};
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
