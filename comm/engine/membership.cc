#include "comm/engine/membership.hpp"

#include <algorithm>
#include <utility>

#include "comm/base/log.hpp"
#include "comm/engine/engine.hpp"

namespace isthmus {

namespace {

// Calls that run at once; later ones wait in issue order. More only thrash the cache.
constexpr std::size_t kMostActive = 4;

// From so many ranks on they say whose bells they need: of 256 that come one after the other each
// would wake all that are there.
constexpr std::size_t kManyOnNode = 16;

}  // namespace

Membership::Membership(Engine& engine, MembershipConfig config)
    : engine_(engine),
      config_(std::move(config)),
      pointToPoint_(*this),
      readChoice_(config_.reading) {
    nodeRanks_ = config_.layout.nodes[config_.layout.nodeOf(config_.me)];
    raised_.assign(kLanes * kMaxWindow * nodeRanks_.size(), 0);
    seen_.assign(raised_.size(), 0);
    finishedThere_.assign(nodeRanks_.size(), 0);
    bells_.assign(nodeRanks_.size(), 0);
    for (int lane = 0; lane < kLanes; ++lane) {
        for (const Rank rank : nodeRanks_) {
            slots_.push_back(&member(rank).block->slot(static_cast<int>(nodeRanks_.size()),
                                                       config_.inlineBytes, lane));
            inlineAreas_.push_back(slots_.back()->inlineArea());
        }
    }
}

Membership::~Membership() {
    for (int lane = 0; lane < kLanes; ++lane) keep(lane, {});
    if (config_.block != nullptr) engine_.arena().free(config_.block);
}

void Membership::keep(int lane, ScratchPool::Block block) {
    engine_.giveScratch(std::exchange(kept_[static_cast<std::size_t>(lane)], block));
}

std::uint64_t& Membership::raisedBase(int lane, int slot, int position) {
    return raised_[(static_cast<std::size_t>(lane) * kMaxWindow + slot) * nodeRanks_.size() +
                   position];
}

std::uint64_t& Membership::seenBase(int lane, int slot, int position) {
    return seen_[(static_cast<std::size_t>(lane) * kMaxWindow + slot) * nodeRanks_.size() +
                 position];
}

void Membership::tellCpu(int cpu) {
    std::atomic<int>& mine = myBlock().cpu;
    if (mine.load(std::memory_order_relaxed) != cpu) mine.store(cpu, std::memory_order_relaxed);
}

Awaited Membership::awaited(int cpu) {
    tellCpu(cpu);
    auto found = pointToPoint_.isIdle() ? Awaited::kNobody : Awaited::kUnknown;
    for (const auto& execution : active_) found = std::max(found, execution->awaited(cpu));
    return found;
}

bool Membership::mayMove() const {
    if (isIdle()) return false;
    if (!failure_.ok() || !queued_.empty() || !pointToPoint_.isIdle()) return true;
    return std::any_of(active_.begin(), active_.end(),
                       [](const auto& execution) { return execution->mayMove(); });
}

bool Membership::waitsForMessages() const {
    return !pointToPoint_.isIdle() ||
           std::any_of(active_.begin(), active_.end(),
                       [](const auto& execution) { return execution->waitsForMessages(); });
}

void Membership::noteNews() {
    std::fill(bells_.begin(), bells_.end(), 1);
    hasBells_ = true;
}

bool Membership::tellAwaited() {
    if (nodeRanks_.size() < kManyOnNode) return false;
    const bool isOne = failure_.ok() && queued_.empty() && active_.size() == 1;
    const int awaits = isOne ? active_.front()->awaitedPosition() : -1;
    return myBlock().awaits.exchange(awaits, std::memory_order_relaxed) != awaits;
}

// A bell costs a fence and a look at the peer's memory: once a turn, not once a signal.
void Membership::ring() {
    if (!std::exchange(hasBells_, false)) return;
    const bool isMany = nodeRanks_.size() >= kManyOnNode;
    // Pairs with the one in prepareSleep: who sleeps for me either has seen what I did or says so.
    if (isMany) std::atomic_thread_fence(std::memory_order_seq_cst);
    for (std::size_t i = 0; i < bells_.size(); ++i) {
        if (std::exchange(bells_[i], 0) == 0 || nodeRanks_[i] == me()) continue;
        const int awaits = member(nodeRanks_[i]).block->awaits.load(std::memory_order_relaxed);
        if (isMany && awaits >= 0 && awaits != myPosition()) continue;
        member(nodeRanks_[i]).endpoint->ringDoorbell();
    }
}

std::string Membership::nameOf(Rank rank) const {
    if (rank < 0) return "any rank";
    return "rank " + std::to_string(config_.globalRanks[rank]) + " (" + member(rank).place + ")";
}

std::string Membership::title(const CallRequest& call, std::uint64_t sequence) const {
    std::string text(isthmus::nameOf(call.collective));
    text += " #" + std::to_string(sequence) + " on \"" + config_.name + "\"";
    if (!call.name.empty()) text += " named \"" + call.name + "\"";
    return text;
}

void Membership::submit(std::unique_ptr<CallRequest> call) {
    if (!failure_.ok()) {
        call->work->complete(failure_);
        return;
    }
    queued_.push_back(std::move(call));
}

bool Membership::progress(Time now) {
    welcomeBack();
    if (failure_.ok() && isIdle()) return false;
    const bool isNews = failure_.ok() ? advance(now) : drainFailed(now);
    ring();
    return isNews;
}

bool Membership::advance(Time now) {
    bool isNews = admit();
    for (std::size_t i = 0; i < active_.size() && failure_.ok(); ++i)
        isNews |= active_[i]->progress();
    if (failure_.ok()) isNews |= pointToPoint_.progress(now);
    if (failure_.ok()) isNews |= retire();
    if (failure_.ok()) isNews |= settleHeld(now);
    if (failure_.ok() && now - checkedAt_ >= kCheckEvery) isNews |= checkTime(now);
    return isNews;
}

// True when all of my node are through with the call that had the next call's lane before.
bool Membership::isLaneFree() {
    for (std::size_t i = 0; i < nodeRanks_.size(); ++i) {
        if (finishedThere_[i] + kLanes > nextSequence_) continue;
        // Acquire: pairs with retire(); the peer has read the lane's old slot by then.
        finishedThere_[i] =
            onNode(static_cast<int>(i)).block->finished.load(std::memory_order_acquire);
        if (finishedThere_[i] + kLanes <= nextSequence_) return false;
    }
    return true;
}

std::unique_ptr<Execution> Membership::takeExecution() {
    if (spare_.empty()) return std::make_unique<Execution>(*this);
    std::unique_ptr<Execution> execution = std::move(spare_.back());
    spare_.pop_back();
    return execution;
}

bool Membership::admit() {
    bool isNews = false;
    while (!queued_.empty() && active_.size() < kMostActive && failure_.ok()) {
        if (!isLaneFree()) return isNews;
        if (firstLeft_ >= 0 && member(firstLeft_).leftAt <= nextSequence_) {
            failWithout(firstLeft_, *queued_.front(), nextSequence_);
            return true;
        }
        auto call = std::move(queued_.front());
        queued_.pop_front();
        keep(static_cast<int>(nextSequence_ % kLanes), {});
        active_.push_back(takeExecution());
        Execution& execution = *active_.back();
        execution.begin(std::move(call), nextSequence_++);
        remember(execution);
        if (!isAgreed(execution)) return true;
        if (Status status = execution.enter(); !status.ok()) {
            fail(status.within(title(execution.call(), execution.sequence())));
            return true;
        }
        isNews = true;
    }
    return isNews;
}

std::shared_ptr<Work> Membership::takeOut(std::size_t index) {
    std::unique_ptr<Execution> execution = std::move(active_[index]);
    active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(index));
    auto work = execution->call().work;
    execution->end();
    spare_.push_back(std::move(execution));
    return work;
}

bool Membership::retire() {
    bool isNews = false;
    for (std::size_t i = 0; i < active_.size();) {
        if (!active_[i]->isDone()) {
            ++i;
            continue;
        }
        const auto work = takeOut(i);
        const std::uint64_t finished =
            active_.empty() ? nextSequence_ : active_.front()->sequence();
        // Release: pairs with admit() of the peers.
        myBlock().finished.store(finished, std::memory_order_release);
        noteNews();
        engine_.finish(*work, {});
        isNews = true;
    }
    return isNews;
}

std::uint64_t Membership::doneBelow() const {
    return active_.empty() ? nextSequence_ : active_.front()->sequence();
}

// It wants to know when I leave, though I may never have written to it.
void Membership::asked(Rank from) {
    config_.members[from].hasAsked = true;
    if (isLeaving_) engine_.sendLeave(*this, from, nextSequence_);
}

void Membership::operationFailed(const Status& why, Rank peer) {
    // A lost peer is handled by lost(), after a moment in which the root cause may arrive.
    if (why.code() == Status::Code::kPeerLost || why.code() == Status::Code::kAborted) return;
    const std::string what = active_.empty()
                                 ? "a call on \"" + config_.name + "\""
                                 : title(active_.front()->call(), active_.front()->sequence());
    fail(Status(why.code(),
                what + ": " + nameOf(me()) + " with " + nameOf(peer) + ": " + why.what()));
}

void Membership::lost(const Endpoint& endpoint, const Status& why, Time now) {
    for (Rank rank = 0; rank < ranks(); ++rank) {
        Member& member = config_.members[rank];
        if (member.endpoint != &endpoint) continue;
        member.hasStopped = true;
        if (member.leftAt >= nextSequence_ && member.leftAt != ~std::uint64_t{0})
            continue;  // it did its part
        const std::string what = active_.empty()
                                     ? "\"" + config_.name + "\""
                                     : title(active_.front()->call(), active_.front()->sequence());
        departures_.push_back(
            {rank, now, Status::peerLost(what + ": " + nameOf(rank) + " is lost: " + why.what())});
    }
}

void Membership::told(Rank from, const Status& verdict, std::uint64_t finished) {
    config_.members[from].hasStopped = true;  // it stopped before it told
    if (!failure_.ok()) return;
    if (!held_) held_ = Held{verdict, engine_.now(), finished};
    held_->below = std::min(held_->below, finished);
    settleHeld(engine_.now());
}

void Membership::left(Rank from, std::uint64_t finished) {
    config_.members[from].hasStopped = true;
    config_.members[from].leftAt = finished;
    if (firstLeft_ < 0 || finished < member(firstLeft_).leftAt) firstLeft_ = from;
    if (member(from).leftSince == Time::max()) config_.members[from].leftSince = engine_.now();
    if (!failure_.ok()) return;
    // Calls that I entered before I heard of it, and it never will.
    const auto orphan = std::find_if(active_.begin(), active_.end(), [&](const auto& execution) {
        return execution->sequence() >= finished;
    });
    if (orphan != active_.end()) failWithout(from, (*orphan)->call(), (*orphan)->sequence());
}

void Membership::failWithout(Rank rank, const CallRequest& call, std::uint64_t sequence) {
    fail(Status::peerLost(title(call, sequence) + ": " + nameOf(rank) +
                          " has left the communicator"));
}

Time Membership::goneAt(Rank rank) const {
    const Time since = member(rank).leftSince;
    return since == Time::max() ? since : since + kHoldLoss;
}

void Membership::leave() {
    isLeaving_ = true;
    for (Rank rank = 0; rank < ranks(); ++rank) {
        const Member& other = member(rank);
        if (rank == me()) continue;
        if (other.endpoint->state() == Endpoint::State::kIdle && !other.hasAsked)
            continue;  // it never heard of me
        engine_.sendLeave(*this, rank, nextSequence_);
    }
}

bool Membership::isForgotten() const {
    return isLeaving_ && active_.empty() && pointToPoint_.isIdle() &&
           std::all_of(nodeRanks_.begin(), nodeRanks_.end(),
                       [&](Rank rank) { return rank == me() || member(rank).hasStopped; });
}

void Membership::tellAll(const Status& verdict) {
    for (Rank rank = 0; rank < ranks(); ++rank) {
        if (rank != me()) engine_.sendVerdict(*this, rank, verdict, doneBelow());
    }
}

void Membership::fail(Status why) {
    if (!failure_.ok()) return;
    {
        const std::lock_guard lock(failureMutex_);
        failure_ = std::move(why);
    }
    failedAt_ = engine_.now();
    log(LogLevel::kInfo, failure_.what());
    for (const auto& execution : active_) execution->stop();
    for (const Member& member : config_.members) {
        if (member.endpoint != nullptr) member.endpoint->cancel(config_.id, failure_);
    }
    tellAll(failure_);
    pointToPoint_.fail(failure_);
}

// Calls complete in the order of issue, those that had not begun last.
bool Membership::drainFailed(Time now) {
    checkedAt_ = now;
    bool isNews = pointToPoint_.progress(now);
    for (const auto& execution : active_) isNews |= execution->progress();
    const bool haveStopped = std::all_of(nodeRanks_.begin(), nodeRanks_.end(), [&](Rank rank) {
        return rank == me() || member(rank).hasStopped;
    });
    const bool mayTouch = !haveStopped && now - failedAt_ < kStopPatience;
    while (!active_.empty() && active_.front()->pendingOperations() == 0) {
        if (mayTouch && !active_.front()->isPrivate()) return isNews;
        const auto work = takeOut(0);
        engine_.finish(*work, failure_);
        isNews = true;
    }
    while (active_.empty() && !queued_.empty()) {
        const auto call = std::move(queued_.front());
        queued_.pop_front();
        engine_.finish(*call->work, failure_);
        isNews = true;
    }
    return isNews;
}

}  // namespace isthmus
