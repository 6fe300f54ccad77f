#include "comm/communicator/communicator.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "comm/base/log.hpp"
#include "comm/communicator/call_check.hpp"
#include "comm/communicator/formation.hpp"
#include "comm/communicator/widened.hpp"

namespace isthmus {

namespace {

// Failed calls give their buffers back soon: they wait for their node's ranks to stop, half a
// second at most.
constexpr std::chrono::seconds kBuffersBack(2);

// Calls in flight end by deadlines of their own, up to 300 ms late (membership_time.cc), and know
// better who is missing.
constexpr std::chrono::milliseconds kVerdicts(500);

// Whoever waits for the end of a communicator hears this often for whom, as at the start; or at
// half time, where that is earlier.
constexpr std::chrono::seconds kReportEvery(10);

std::shared_ptr<Work> doneWith(Status status) {
    auto work = std::make_shared<Work>();
    work->complete(std::move(status));
    return work;
}

Status afterFork() {
    return Status::aborted(
        "used after fork: a forked child has no communicators of its own; start it with exec or "
        "make the communicator in the child");
}

Status insideCallback() {
    return Status::invalidArgument(
        "a completion callback must not wait for a call; start it with a request instead");
}

}  // namespace

Communicator::Communicator(Runtime& runtime, std::unique_ptr<Exchanger> exchanger, Rank me,
                           int ranks, CommunicatorConfig config)
    : runtime_(runtime),
      me_(me),
      ranks_(ranks),
      config_(std::move(config)),
      exchanger_(std::move(exchanger)) {
    static std::atomic<int> number{0};
    const int mine = number.fetch_add(1);
    if (config_.name.empty()) config_.name = "comm" + std::to_string(mine);
    if (config_.timeout.count() == 0)
        config_.timeout = runtime.options().milliseconds("ISTHMUS_TIMEOUT");
}

Result<std::unique_ptr<Communicator>> Communicator::make(Runtime& runtime,
                                                         std::unique_ptr<Exchanger> exchanger,
                                                         Rank me, int ranks,
                                                         CommunicatorConfig config) {
    if (Engine::isForked()) return afterFork();
    if (ranks < 1 || me < 0 || me >= ranks) {
        return Status::invalidArgument("rank " + std::to_string(me) + " of " +
                                       std::to_string(ranks) + " ranks does not exist");
    }
    if (ranks > 65535) return Status::unsupported("more than 65535 ranks in one communicator");
    if (!config.globalRanks.empty() &&
        config.globalRanks.size() != static_cast<std::size_t>(ranks)) {
        return Status::invalidArgument(std::to_string(config.globalRanks.size()) +
                                       " global ranks for " + std::to_string(ranks) + " ranks");
    }
    const bool isLazy = config.isLazy;
    std::unique_ptr<Communicator> made(
        new Communicator(runtime, std::move(exchanger), me, ranks, std::move(config)));
    if (!isLazy) ISTHMUS_TRY(made->connect());
    return made;
}

Status Communicator::connect() {
    if (isConnected_.load(std::memory_order_acquire)) return {};
    const std::lock_guard lock(mutex_);
    if (isConnected_.load(std::memory_order_relaxed)) return {};
    if (!connectFailure_.ok()) return connectFailure_;
    if (Engine::isForked()) return afterFork();
    auto formed = formMembership(runtime_, *exchanger_, me_, ranks_, deadlineIn(config_.timeout));
    if (!formed.ok()) {
        connectFailure_ = formed.status().within("making \"" + config_.name + "\"");
        return connectFailure_;
    }
    formed->name = config_.name;
    formed->globalRanks = config_.globalRanks;
    if (formed->globalRanks.empty()) {
        for (Rank rank = 0; rank < ranks_; ++rank) formed->globalRanks.push_back(rank);
    }
    layout_ = formed->layout;
    SelectorOptions choosing = runtime_.selectorOptions();
    // Pieces of one pass come by several cards and end apart: more passes keep all of them busy (of
    // 1+0.25 Gbit/s, two ranks a node: 0.91 of the sum with 4 passes, 0.955 with 6).
    if (formed->cards > 1) choosing.window *= 2;
    choosing.canRead = formed->canRead;
    choosing.inlineBytes = formed->inlineLimit;
    plans_ = std::make_unique<PlanCache>(layout_, me_, std::move(choosing));
    Engine& engine = runtime_.engine();
    engine.withToken([&] {
        membership_ = std::make_unique<Membership>(engine, std::move(*formed));
        engine.add(*membership_);
    });
    isConnected_.store(true, std::memory_order_release);
    return {};
}

Communicator::~Communicator() {
    (void)close().ok();
}

Status Communicator::close() {
    if (membership_ == nullptr) {
        isClosed_ = true;
        return {};
    }
    if (Engine::isForked()) {
        [[maybe_unused]] const auto* left = membership_.release();  // the parent's
        return afterFork();
    }
    Status outcome = flush();
    isClosed_ = true;
    Engine& engine = runtime_.engine();
    engine.withToken([&] {
        if (!membership_->isIdle() && !outcome.ok()) membership_->fail(outcome);  // in a callback
        engine.retire(std::move(membership_));
    });
    return outcome;
}

Status Communicator::flush() {
    if (!isConnected_.load(std::memory_order_acquire)) return {};
    if (Engine::isForked()) return afterFork();
    Engine& engine = runtime_.engine();
    // Runs after all that was submitted before.
    engine.withToken([this] { membership_->refreshIdle(); });
    if (membership_->wasIdle()) return {};
    if (engine.isOnThisThread()) return insideCallback();
    if (!waitUntilIdle()) {
        engine.withToken([&] {
            membership_->fail(
                Status::timeout("\"" + config_.name +
                                "\" was to end with calls in flight that did not end within " +
                                std::to_string(config_.timeout.count()) + " ms: it waited for " +
                                membership_->unfinished(engine.now())));
        });
        engine.waitUntil([this] { return membership_->wasIdle(); }, engine.now() + kBuffersBack);
    }
    return membership_->failureNow();
}

// True when it is, before the timeout.
bool Communicator::waitUntilIdle() {
    Engine& engine = runtime_.engine();
    const Time until = engine.now() + config_.timeout + kVerdicts;
    const Time step = std::min<Time>(kReportEvery, Time(config_.timeout) / 2);
    const auto isIdle = [this] { return membership_->wasIdle(); };
    while (!engine.waitUntil(isIdle, std::min(until, engine.now() + step))) {
        const Time now = engine.now();
        if (now >= until) return false;
        std::string what;
        engine.withToken([&] { what = membership_->unfinished(now); });
        const auto left = std::chrono::duration_cast<std::chrono::seconds>(until - now);
        log(LogLevel::kWarning, "the end of \"" + config_.name + "\" waits for " + what + " (" +
                                    std::to_string(left.count()) + " s left)");
    }
    return true;
}

Status Communicator::checkReady(bool mustEnd) {
    if (Engine::isForked()) return afterFork();
    // Persistent requests may outlive the communicator that they are of.
    if (isClosed_) return Status::invalidArgument("the communicator was destroyed");
    if (mustEnd && runtime_.engine().isOnThisThread()) return insideCallback();
    return {};
}

Status Communicator::check(const CallRequest& request) const {
    const bool maySum = runtime_.onlySums() && request.collective == Collective::kAllReduce;
    return checkCall(request, me_, ranks_, maySum ? Buffers::kIgnored : Buffers::kUsed);
}

Status Communicator::prepare(CallRequest& request, const CallOptions& options) {
    const auto isChecked = [&] {
        ISTHMUS_TRY(checkReady(options.mustEnd()));
        ISTHMUS_TRY(check(request));
        ISTHMUS_TRY(connect());
        // Where nobody holds data all do.
        return onlySums(request) ? Status() : checkCall(request, me_, ranks_);
    };
    Status status = isChecked();
    if (status.ok()) {
        fillIn(request, options);
        request.isDeterministic =
            options.isDeterministic || runtime_.selectorOptions().isDeterministic;
        status = choosePlans(request, options.algorithm);
    }
    return status.ok() ? status : status.within("\"" + config_.name + "\"");
}

Status Communicator::choosePlans(CallRequest& request, const std::string& algorithm) {
    if (request.prepared != nullptr) return {};  // it is started again
    const std::lock_guard lock(mutex_);
    auto prepared = plans_->prepare(request, algorithm);
    if (!prepared.ok()) return prepared.status();
    request.prepared = std::move(*prepared);
    return {};
}

Status Communicator::prepare(PointToPointRequest& request, const CallOptions& options) {
    Status status = checkReady(options.mustEnd());
    if (status.ok()) status = checkTransfer(request, me_, ranks_);
    if (status.ok() && !options.algorithm.empty()) {
        status = Status::invalidArgument(std::string(request.isSend ? "send" : "recv") +
                                         " has no algorithms, got \"" + options.algorithm + "\"");
    }
    if (status.ok()) status = connect();
    if (!status.ok()) return status.within("\"" + config_.name + "\"");
    fillIn(request, options);
    return {};
}

template <typename Request>
void Communicator::fillIn(Request& request, const CallOptions& options) {
    request.limit = options.timeout.count() > 0 ? options.timeout : config_.timeout;
    request.deadline = runtime_.engine().now() + request.limit;
    request.priority = std::clamp(options.priority, 0, 7);
    request.name = options.name;
}

void Communicator::start(const std::function<void()>& begin, const Work& work,
                         const CallOptions& options, Time until) {
    Engine& engine = runtime_.engine();
    if (!options.isBlocking) {
        engine.submit(begin);
        return;
    }
    const bool isPatient = options.patience.count() > 0;
    engine.run(
        begin, [&work] { return work.isDone(); },
        isPatient ? std::min(until, engine.now() + options.patience) : until);
}

std::shared_ptr<Work> Communicator::call(CallRequest request, const CallOptions& options) {
    if (Status status = prepare(request, options); !status.ok()) return doneWith(std::move(status));
    if (isWidened(request, options)) return callWidened(*this, std::move(request), options, 1.0);
    auto work = std::make_shared<Work>();
    request.work = work;
    tellEvent(*work);
    const Time until = request.deadline + std::chrono::seconds(5);  // the call itself fails first
    // A plain pointer, so that the closure needs no memory of its own; it runs once.
    auto* const owned = new CallRequest(std::move(request));
    start([this, owned] { membership_->submit(std::unique_ptr<CallRequest>(owned)); }, *work,
          options, until);
    return work;
}

std::shared_ptr<Work> Communicator::transfer(PointToPointRequest request,
                                             const CallOptions& options) {
    if (Status status = prepare(request, options); !status.ok()) return doneWith(std::move(status));
    auto work = std::make_shared<Work>();
    request.work = work;
    tellEvent(*work);
    const Time until = request.deadline + std::chrono::seconds(5);
    auto* const owned = new PointToPointRequest(std::move(request));
    start(
        [this, owned] {
            membership_->pointToPoint().submit(std::unique_ptr<PointToPointRequest>(owned));
        },
        *work, options, until);
    return work;
}

Status Communicator::wait(const Work& work, std::chrono::milliseconds limit) {
    if (work.isDone()) return work.status();
    Status waited = waitUntil([&work] { return work.isDone(); }, limit);
    return work.isDone() ? work.status() : waited;
}

Status Communicator::waitUntil(const std::function<bool()>& isOver,
                               std::chrono::milliseconds limit) {
    if (Engine::isForked()) return afterFork();
    Engine& engine = runtime_.engine();
    if (engine.isOnThisThread()) return insideCallback();
    const Time until = limit.count() > 0 ? engine.now() + limit : Time::max();
    if (engine.waitUntil(isOver, until)) return {};
    return Status::timeout("not done after " + std::to_string(limit.count()) +
                           " ms of waiting; the call goes on until its own deadline");
}

Status Communicator::cancel(const Work& work) {
    if (Engine::isForked()) return afterFork();
    if (work.isDone()) return Status::invalidArgument("cancel: the call is over");
    Status outcome;
    runtime_.engine().withToken([&] { outcome = membership_->pointToPoint().cancel(work); });
    return outcome;
}

void Communicator::abort(const Status& why) {
    if (Engine::isForked()) return;
    if (!isConnected_.load(std::memory_order_acquire)) {
        if (mutex_.try_lock()) {
            connectFailure_ = why;
            mutex_.unlock();
        }
        return;
    }
    runtime_.engine().withToken([&] { membership_->fail(why); });
}

Status Communicator::failure() {
    if (isConnected_.load(std::memory_order_acquire)) return membership_->failureNow();
    const std::unique_lock lock(mutex_, std::try_to_lock);
    return lock.owns_lock() ? connectFailure_ : Status();  // connecting: not known yet
}

Result<int> Communicator::eventDescriptor() {
    const std::lock_guard lock(mutex_);
    if (event_ == nullptr) {
        event_ = std::make_shared<UniqueFd>(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
        if (!event_->isOpen()) return Status::resource("no descriptor is left for an event");
        hasEvent_.store(true, std::memory_order_release);
    }
    return event_->get();
}

void Communicator::tellEvent(Work& work) {
    if (!hasEvent_.load(std::memory_order_acquire)) return;
    std::shared_ptr<UniqueFd> event;
    {
        const std::lock_guard lock(mutex_);
        event = event_;
    }
    work.onComplete([event](const Status&) {
        const std::uint64_t one = 1;
        [[maybe_unused]] const auto written = ::write(event->get(), &one, sizeof(one));
    });
}

WireCounters Communicator::wireCounters() {
    WireCounters sum;
    runtime_.engine().withToken([&] { sum = runtime_.engine().wireCounters(); });
    return sum;
}

std::vector<CardCounters> Communicator::cardCounters() {
    std::vector<CardCounters> cards;
    runtime_.engine().withToken([&] {
        for (const Transport* between : runtime_.betweenNodes()) {
            const std::vector<CardCounters> more = between->cards();
            cards.insert(cards.end(), more.begin(), more.end());
        }
    });
    return cards;
}

}  // namespace isthmus
