#pragma once

#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "comm/engine/call.hpp"
#include "comm/transport/transport.hpp"

namespace isthmus {

class Membership;

/// Sends and receives of one communicator. The n-th send of (source, destination, tag) meets the
/// n-th receive. An any-source receive binds to the first announced message that no earlier receive
/// claims. Engine thread only.
class PointToPoint {
public:
    explicit PointToPoint(Membership& group) : group_(group) {}

    void submit(std::unique_ptr<PointToPointRequest> request);
    /// Takes the receive of `work` out, as if it had never been; the work fails with kAborted soon.
    /// kInvalidArgument when it has begun, or is something else. Engine thread only.
    Status cancel(const Work& work);
    bool progress(Time now);
    bool isIdle() const { return transfers_.empty(); }
    /// The first one under way and with whom, in words; there is one.
    std::string unfinished() const;
    Time nextDeadline() const;
    /// The ranks that messages under way are to or from.
    std::vector<Rank> awaited() const;

    /// Completes what has no message under way and marks the rest; messages come back by
    /// Endpoint::cancel.
    void fail(const Status& why);

private:
    struct Transfer : Operation {
        std::unique_ptr<PointToPointRequest> request;
        Rank peer = -1;  ///< -1: any source, not bound yet
        bool isPosted = false;
        bool isMet = false;  ///< a receive whose message was here when it was posted
        bool isBack = false;
        bool isCancelled = false;
        Status outcome;
    };
    using Lane = std::pair<Rank, std::uint32_t>;  ///< peer and tag

    void ask(Rank peer);
    void bind(Transfer& transfer, Rank peer);
    bool bindAnySource(Transfer& transfer);
    bool finish(Transfer& transfer);
    Time orphanedAt(const Transfer& transfer) const;
    bool failOrphan(const Transfer& transfer, Time now);
    bool withdraw(Transfer& transfer);
    void deliverToSelf();
    std::string title(const PointToPointRequest& request) const;

    Membership& group_;
    std::list<std::unique_ptr<Transfer>> transfers_;
    std::set<Rank> asked_;  ///< to tell when they leave
    std::map<Lane, std::uint64_t> sent_;
    std::map<Lane, std::uint64_t> received_;
};

}  // namespace isthmus
