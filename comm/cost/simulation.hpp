#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <queue>
#include <span>
#include <tuple>
#include <vector>

#include <isthmus/status.hpp>

#include "comm/cost/simulate.hpp"

namespace isthmus {

/// Which steps of other ranks a step meets.
struct StepLinks {
    std::vector<int> next;    ///< own steps that come after this one
    int needs = 0;            ///< own steps before it, plus what arrives from others
    std::uint64_t bytes = 0;  ///< moved or sent
    int partner = -1;         ///< send: the peer's recv; recv: the peer's send
    std::vector<std::pair<Rank, int>> wakes;  ///< signal: (rank, wait step)
};

/// One run of a set of plans over virtual time. Made for one call of run().
class Simulation {
public:
    Simulation(std::span<const Plan> plans, const Layout& layout, const PlanCall& call,
               const LinkModel& model);

    /// Seconds until the last rank ends.
    Result<double> run();

private:
    enum class What : std::uint8_t { kReady, kDone, kPiece };

    struct Event {
        double at = 0;
        std::uint64_t order = 0;  // ties: first made, first served
        What what = What::kReady;
        Rank rank = 0;
        int segment = 0;
        int step = 0;

        bool operator>(const Event& other) const {
            return std::tie(at, order) > std::tie(other.at, other.order);
        }
    };

    struct Progress {
        std::vector<int> needs;
        std::vector<double> posted;  // messages: when this side was ready; below 0: not yet
        int left = 0;
    };

    struct RankState {
        std::vector<StepLinks> links;
        std::vector<Progress> segments;
        double cpuFree = 0;
        int started = 0;
    };

    Status connect();
    Status connectOrder(const std::map<std::pair<Rank, Rank>, std::vector<int>>& signals,
                        const std::map<std::pair<Rank, Rank>, std::vector<int>>& waits);
    void measure();
    void push(double at, What what, Rank rank, int segment, int step);
    void startSegment(double at, Rank rank);
    void serve(const Event& event);
    void onReady(const Event& event);
    void onDone(const Event& event);
    void work(const Event& event, double seconds);
    void postMessage(const Event& event);
    void transfer(double at, Rank from, int segment, int step);
    void raise(const Event& event);
    void satisfy(double at, Rank rank, int segment, int step);

    const Step& stepOf(Rank rank, int step) const;
    StepLinks& linksOf(Rank rank, int step);
    RankState& stateOf(Rank rank) { return ranks_[static_cast<std::size_t>(rank)]; }
    Progress& progressOf(Rank rank, int segment);
    double rankRate(Rank rank, double nodeRate) const;
    bool sameNode(Rank one, Rank other) const;
    struct Passage {
        double sent = 0;
        double arrived = 0;
    };
    Passage overWire(double at, int from, int to, double bytes);

    std::span<const Plan> plans_;
    const PlanCall call_;
    const LinkModel model_;
    std::vector<int> nodeOf_;
    std::vector<double> ranksOnNode_;
    std::vector<RankState> ranks_;
    std::vector<double> egressFree_;
    std::vector<double> ingressFree_;
    std::vector<int> rackOf_;  // by node
    std::vector<double> rackEgressFree_;
    std::vector<double> rackIngressFree_;
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
    std::uint64_t made_ = 0;
    double end_ = 0;
    std::int64_t unfinished_ = 0;
};

}  // namespace isthmus
