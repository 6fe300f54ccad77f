#pragma once

#include <cstddef>
#include <cstdint>
#include <queue>
#include <tuple>
#include <vector>

#include <isthmus/status.hpp>

#include "comm/cost/link_model.hpp"
#include "comm/cost/plan_bytes.hpp"
#include "comm/cost/step_graph.hpp"

namespace isthmus {

/// Runs the steps of a job over virtual time, once for each call of run(). Where some ranks stand
/// for all, the others are taken to do the same at the same time: what they send and get is what
/// the stand-ins send and get.
class Simulation {
public:
    /// `graph` is connected and outlives this; `layout` is of all its ranks.
    Simulation(const StepGraph& graph, const Layout& layout, const LinkModel& model);

    /// Seconds until the last rank ends. kInvalidArgument: somebody would wait for ever.
    Result<double> run(const PlanCall& call);

private:
    enum class What : std::uint8_t { kReady, kDone, kPiece, kDeparture, kTrunk, kArrival };

    struct Event {
        double at = 0;
        std::uint64_t order = 0;
        int rank = 0;
        int segment = 0;
        int step = 0;
        What what = What::kReady;

        bool operator>(const Event& other) const {
            // Ties: earlier segments and steps first, so that no rank is before its likes.
            return std::tie(at, segment, step, order) >
                   std::tie(other.at, other.segment, other.step, other.order);
        }
    };

    struct Progress {
        std::vector<int> needs;
        std::vector<double> times;  // messages: when this side was ready (below 0: not yet), then,
                                    // at the receiver, when the last byte may come
        int left = 0;
    };

    struct RankState {
        std::vector<Progress> segments;
        double cpuFree = 0;
        int started = 0;
    };

    /// One way in or out.
    struct Port {
        double bytesPerSecond = 0;
        double free = 0;
    };

    void layCards(const Layout& layout);
    void layTrunks(const Layout& layout);
    void reset(const PlanCall& call);
    void push(double at, What what, Rank rank, int segment, int step);
    void startSegment(double at, Rank rank);
    void serve(const Event& event);
    void onReady(const Event& event);
    void onDone(const Event& event);
    void onArrival(const Event& event);
    void work(const Event& event, double seconds);
    void postMessage(const Event& event);
    void onDeparture(const Event& event);
    void onTrunk(const Event& event);
    void leave(const Event& event, double begins, double sent);
    static double throughTrunk(Port& trunk, double at, double bytes);
    void raise(const Event& event);
    void satisfy(double at, Rank rank, int segment, int step);

    const GraphStep& stepOf(Rank rank, int step) const {
        return graph_.stepsOf(rank)[static_cast<std::size_t>(step)];
    }
    RankState& stateOf(Rank rank) { return ranks_[static_cast<std::size_t>(rank)]; }
    Progress& progressOf(Rank rank, int segment) {
        return stateOf(rank).segments[static_cast<std::size_t>(segment)];
    }
    double bytesOf(const GraphStep& step) const { return step.share * blockBytes_; }
    double rankRate(Rank rank, double nodeRate) const;
    int nodeOf(Rank rank) const { return nodeOf_[static_cast<std::size_t>(rank)]; }
    std::size_t cardOf(Rank rank) const;
    std::size_t trunkOf(Rank rank) const { return trunkOf_[static_cast<std::size_t>(rank)]; }
    bool sameNode(Rank one, Rank other) const { return nodeOf(one) == nodeOf(other); }
    bool isOverTrunks(Rank one, Rank other) const {
        return !trunksOut_.empty() && trunkOf(one) != trunkOf(other);
    }

    const StepGraph& graph_;
    const LinkModel model_;
    std::vector<int> nodeOf_;
    std::vector<int> placeInNode_;
    std::vector<double> ranksOnNode_;
    std::vector<std::size_t> trunkOf_;  // by rank: its rack's link to others, or its rail's
    std::vector<Port> cardsOut_;
    std::vector<Port> cardsIn_;
    std::vector<Port> trunksOut_;
    std::vector<Port> trunksIn_;
    std::vector<RankState> ranks_;
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
    PlanCall call_;
    double blockBytes_ = 0;
    std::uint64_t made_ = 0;
    double end_ = 0;
    std::int64_t unfinished_ = 0;
};

}  // namespace isthmus
