#include "tools/cli/place_search.hpp"

#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>

#include "scheduler/cluster/trim.hpp"

namespace isthmus::cli {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<bool> wasInterrupted{false};  // by SIGINT; the search looks at it

/// Takes SIGINT while it lives; a second one ends the program as usual.
class Interruption {
public:
    Interruption() {
        wasInterrupted = false;
        struct sigaction action = {};
        action.sa_handler = [](int) { wasInterrupted = true; };
        action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
        ::sigaction(SIGINT, &action, &before_);
    }
    ~Interruption() { ::sigaction(SIGINT, &before_, nullptr); }
    Interruption(const Interruption&) = delete;
    Interruption& operator=(const Interruption&) = delete;

private:
    struct sigaction before_ = {};
};

/// Says after each second how far a search is: one line that is written over on a terminal.
class Progress {
public:
    Progress() : isTerminal_(::isatty(STDERR_FILENO) == 1) {}
    ~Progress() {
        if (isTerminal_ && said_ > 0) fmt::print(stderr, "\n");
    }
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    void tell(const std::string& what, std::uint64_t looked) {
        const auto seconds =
            std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - began_).count();
        if (seconds <= said_) return;
        said_ = seconds;
        fmt::print(stderr,
                   "{}isthmus place: {} s, {}: {} looked at; Ctrl-C takes the best so far{}",
                   isTerminal_ ? "\r" : "", seconds, what, looked, isTerminal_ ? "" : "\n");
        std::fflush(stderr);
    }

private:
    Clock::time_point began_ = Clock::now();
    std::int64_t said_ = 0;
    bool isTerminal_;
};

Result<Placed> placedOf(const PlaceQuestion& asked, const scheduler::Cluster& cluster,
                        const scheduler::Watch& watch) {
    std::optional<scheduler::Prediction> predicted;
    Result<scheduler::SearchAnswer> answer = Status();
    if (asked.model) {
        scheduler::ModelQuestion question = *asked.model;
        question.cluster = cluster;
        Result<scheduler::ModelAnswer> found = scheduler::searchModel(question, watch);
        if (!found.ok()) return found.status();
        answer = std::move(found->search);
        predicted = std::move(found->predictions.front());
    } else {
        scheduler::Question question = asked.question;
        question.cluster = cluster;
        answer = scheduler::search(question, watch);
        if (!answer.ok()) return answer.status();
    }
    Placed placed;
    placed.placement = scheduler::placementOf(cluster, answer->best.front(), asked.isNamed);
    placed.placement.bound.most = answer->lowerBound;
    placed.placement.isOptimal = answer->isOptimal;
    placed.placement.isSumOptimal = answer->isOptimal && answer->best.front().isSumOptimal;
    placed.placement.predicted = std::move(predicted);
    placed.others.assign(answer->best.begin() + 1, answer->best.end());
    placed.search = std::move(*answer);
    return placed;
}

/// Several ways to leave devices over: the best is known, that it is the best is not.
Result<Placed> placeSome(const PlaceQuestion& asked, int ranks, const scheduler::Watch& watch) {
    const int block = asked.question.wanted[scheduler::Axis::kTensor];
    Placed best;
    for (const scheduler::Cluster& cluster :
         scheduler::trimmed(asked.question.cluster, ranks, block)) {
        Result<Placed> next = placedOf(asked, cluster, watch);
        if (!next.ok()) return next.status();
        if (!best.placement.seats.empty() && best.placement.cost <= next->placement.cost) continue;
        best = std::move(*next);
    }
    scheduler::Placement& placement = best.placement;
    placement.bound = {};
    placement.isOptimal = placement.cost.most == 0;
    placement.isSumOptimal = placement.isOptimal;
    placement.method += "; " + std::to_string(asked.question.cluster.ranks() - ranks) +
                        " devices left over, in the best of a few ways";
    return best;
}

}  // namespace

Result<Placed> place(const PlaceQuestion& asked) {
    const Interruption interruption;
    Progress progress;
    scheduler::Watch watch;
    watch.wantsToStop = [] { return wasInterrupted.load(); };
    watch.progress = [&](const std::string& what, std::uint64_t looked) {
        progress.tell(what, looked);
    };
    const std::int64_t ranks = ranksOf(asked.question.wanted);  // 0: some are free
    const int devices = asked.question.cluster.ranks();
    const bool leavesSome = asked.mayLeaveSpare && ranks > 0 && ranks < devices;
    Result<Placed> placed = leavesSome ? placeSome(asked, static_cast<int>(ranks), watch)
                                       : placedOf(asked, asked.question.cluster, watch);
    if (!placed.ok()) return placed;
    scheduler::Placement& placement = placed->placement;
    placement.orders =
        scheduler::costsOfOrders(placement.cluster, placement.degrees, placement.bytes,
                                 placement.predicted ? &placement.predicted->volumes : nullptr);
    return placed;
}

}  // namespace isthmus::cli
