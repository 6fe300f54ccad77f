#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <isthmus/status.hpp>

#include "comm/base/unique_fd.hpp"
#include "comm/communicator/exchanger.hpp"
#include "comm/communicator/runtime.hpp"
#include "comm/engine/membership.hpp"
#include "comm/selector/plan_cache.hpp"

namespace isthmus {

struct CommunicatorConfig {
    std::string name;                      ///< for messages; empty: "comm" and a number
    std::chrono::milliseconds timeout{0};  ///< of one call and of making it; 0: ISTHMUS_TIMEOUT
    bool isLazy = false;                   ///< peers are looked for at the first call
    std::vector<int> globalRanks;          ///< for messages; empty: the same
};

/// What all forms of a call have in common besides the call itself.
struct CallOptions {
    std::chrono::milliseconds timeout{0};  ///< 0: the communicator's
    int priority = 0;
    std::string name;
    std::string algorithm;
    bool isDeterministic = false;           ///< or ISTHMUS_DETERMINISTIC
    bool roundsOnce = false;                ///< or ISTHMUS_ONE_ROUNDING
    bool isBlocking = false;                ///< waits for its end before it returns
    std::chrono::milliseconds patience{0};  ///< of a blocking one: returns after that, while the
                                            ///< call goes on. 0: at its end only
    bool mustEnd() const { return isBlocking && patience.count() == 0; }
};

/// An agreed set of ranks. Made collectively, fails as a whole, replaced, never repaired.
/// Thread: any; calls come in the same order on every rank.
class Communicator {
public:
    /// Collective unless config.isLazy. Errors: those of formMembership(), kInvalidArgument (rank,
    /// ranks).
    static Result<std::unique_ptr<Communicator>> make(Runtime& runtime,
                                                      std::unique_ptr<Exchanger> exchanger, Rank me,
                                                      int ranks, CommunicatorConfig config);
    /// As close().
    ~Communicator();

    /// Waits for calls in flight up to the timeout, with a word every ten seconds and at half time;
    /// those that are left then fail. Says why they failed, if they did: kTimeout and what calls
    /// end with.
    Status flush();

    /// flush(), then leaves; nothing may be called afterwards.
    Status close();

    Rank rank() const { return me_; }
    int ranks() const { return ranks_; }
    const std::string& name() const { return config_.name; }
    std::chrono::milliseconds timeout() const { return config_.timeout; }
    Engine& engine() { return runtime_.engine(); }
    Runtime& runtime() { return runtime_; }

    /// Finds the peers now if that has not happened. Collective then.
    Status connect();
    /// Once connected.
    const Layout& layout() const { return layout_; }

    /// Starts a collective (and, when blocking, ends it). The request's collective, type, op, root,
    /// buffers and counts are the caller's; the rest is filled in here. The Work is done at once
    /// when the arguments are wrong.
    std::shared_ptr<Work> call(CallRequest request, const CallOptions& options);
    std::shared_ptr<Work> transfer(PointToPointRequest request, const CallOptions& options);

    /// A small blocking call with no options but `timeout` and `patience` (CallOptions), in a
    /// fraction of the time that call() takes. Nothing: it is call()'s, whatever is wrong or in the
    /// way, and nothing has happened.
    struct CalledQuickly {
        Status status;
        std::shared_ptr<Work> open;  ///< where the patience ended first: it goes on
    };
    std::optional<CalledQuickly> callQuickly(const QuickCall& call,
                                             std::chrono::milliseconds timeout,
                                             std::chrono::milliseconds patience);

    /// What call() and transfer() do first: find what is wrong, connect, choose the plans. Requests
    /// that went through it can be started again and again, with the same plans.
    Status prepare(CallRequest& request, const CallOptions& options);
    Status prepare(PointToPointRequest& request, const CallOptions& options);

    /// What is wrong with a call before it is known where the peers are.
    Status check(const CallRequest& request) const;
    /// Whether this rank holds no data for the call and only adds. Once connected.
    bool onlySums(const CallRequest& request) const {
        return request.collective == Collective::kAllReduce && layout_.onlySums(me_);
    }

    /// Whether a sum of 16-bit floats goes as one of f32, rounded at its end: where it would be
    /// rounded more than once and the caller does not want that.
    bool isWidened(const CallRequest& request, const CallOptions& options) const;

    /// Waits as the engine's driver. kTimeout after `limit` (the work goes on); zero or less: the
    /// work's own deadline.
    Status wait(const Work& work, std::chrono::milliseconds limit);

    /// The same for any condition that calls bring about; `isOver` is asked on this thread.
    Status waitUntil(const std::function<bool()>& isOver, std::chrono::milliseconds limit);

    /// Takes back a receive that has not begun; its work ends with kAborted. kInvalidArgument for
    /// any other call: the other ranks count on it.
    Status cancel(const Work& work);

    /// The first cause wins; every rank is told.
    void abort(const Status& why);
    Status failure();

    /// Collective over this communicator; see isthmusCommSplit. Null for a color below 0.
    Result<std::unique_ptr<Communicator>> split(int color, int key, CommunicatorConfig config);

    /// Readable when a call may have finished since it was last read; made at the first call of
    /// this. Owned here.
    Result<int> eventDescriptor();

    /// Bytes to and from other nodes since the process started.
    WireCounters wireCounters();
    /// Of the process, card by card, where the transport between nodes knows; any thread.
    std::vector<CardCounters> cardCounters();

private:
    Communicator(Runtime& runtime, std::unique_ptr<Exchanger> exchanger, Rank me, int ranks,
                 CommunicatorConfig config);
    Status checkReady(bool mustEnd);
    void learn(const QuickCall& call);
    Status choosePlans(CallRequest& request, const std::string& algorithm);
    bool waitUntilIdle();
    template <typename Request>
    void fillIn(Request& request, const CallOptions& options);
    void start(const std::function<void()>& begin, const Work& work, const CallOptions& options,
               Time until);
    void tellEvent(Work& work);
    std::unique_ptr<Exchanger> exchangerOverThis();

    Runtime& runtime_;
    Rank me_;
    int ranks_;
    CommunicatorConfig config_;
    std::mutex mutex_;  // guards the four below; held while connecting, so that one thread connects
    std::unique_ptr<Exchanger> exchanger_;
    Status connectFailure_;
    std::unique_ptr<PlanCache> plans_;
    std::atomic<bool> isConnected_{false};
    std::atomic<bool> isClosed_{false};
    std::unique_ptr<Membership> membership_;  // engine's thread only, once connected
    Layout layout_;
    std::shared_ptr<UniqueFd> event_;
    std::atomic<bool> hasEvent_{false};  ///< event_ is there
};

}  // namespace isthmus
