// The best assignment for given degrees.
#include <algorithm>

#include "scheduler/search/bound.hpp"
#include "scheduler/search/exact.hpp"
#include "scheduler/search/improve.hpp"
#include "scheduler/search/orders.hpp"
#include "scheduler/search/racks.hpp"
#include "scheduler/search/search.hpp"

namespace isthmus::scheduler {
namespace {

// Looked-at members of groups: 4 ns each. The second effort follows when the first and a short
// branch and bound have proven nothing.
constexpr Effort kFirstEffort = {.work = 10'000'000, .shakes = 0};
constexpr Effort kSecondEffort = {.work = 60'000'000, .shakes = 300};
constexpr std::size_t kStarts = 3;
// Above it every order takes a tenth of a second; regular trees have their matrices, which hold all
// orders that divide.
constexpr int kMostForEveryOrder = 4'096;
constexpr int kMostForLocalSearch = 8'192;
// Partial nodes: 0.5 us each.
constexpr std::uint64_t kFirstLimit = 1'000'000;
constexpr std::uint64_t kSecondLimit = 6'000'000;

struct Start {
    NodeCost units;
    std::vector<int> nodeOfRank;
};

class Solver {
public:
    Solver(const Cluster& cluster, const Shape& shape, const Weights& weights, const Watch& watch)
        : cluster_(cluster),
          shape_(shape),
          weights_(weights),
          sizes_(cluster.sizes()),
          watch_(watch),
          bound_(lowerBound(shape, weights, sizes_)) {}

    void begin(const std::vector<int>* start);
    void improveStarts();
    void improveBest();
    void prove(std::uint64_t limit);
    void orderRacks();
    void answer(Candidate& candidate) const;

private:
    void improveFrom(const std::vector<int>& nodeOfRank, const Effort& effort);
    void offer(std::vector<int> nodeOfRank);
    bool isProven() const { return isExhausted_ || best_.units <= bound_; }

    const Cluster& cluster_;
    const Shape& shape_;
    const Weights& weights_;
    std::vector<int> sizes_;
    const Watch& watch_;
    NodeCost bound_;
    std::vector<Start> starts_;  ///< the best first, all different in cost
    Start best_;
    std::string method_ = "fixed order or packed blocks";
    int items_ = 0;
    bool isExhausted_ = false;
    bool isMatrix_ = false;  ///< the best is the matrix that the search began with
};

NodeCost unitsOf(const Shape& shape, const Weights& weights, const std::vector<int>& nodeOfRank,
                 int nodes) {
    NodeCost cost;
    for (const PerAxis<std::int64_t>& node : unitsOfNodes(shape, weights, nodeOfRank, nodes)) {
        std::int64_t units = 0;
        for (const Axis axis : kAxes) units += node[axis];
        cost.most = std::max(cost.most, units);
        cost.sum += units;
    }
    return cost;
}

void Solver::offer(std::vector<int> nodeOfRank) {
    const NodeCost units = unitsOf(shape_, weights_, nodeOfRank, static_cast<int>(sizes_.size()));
    const auto at = std::lower_bound(
        starts_.begin(), starts_.end(), units,
        [](const Start& start, const NodeCost& cost) { return start.units < cost; });
    if (at != starts_.end() && at->units == units) return;
    starts_.insert(at, {units, std::move(nodeOfRank)});
    if (starts_.size() > kStarts) starts_.pop_back();
}

void Solver::begin(const std::vector<int>* start) {
    if (start != nullptr) offer(*start);
    for (const NamedOrder& order : namedOrders()) {
        offer(fillInTurn(sequenceOf(shape_, order.fastestFirst), sizes_));
    }
    if (shape_.ranks() <= kMostForEveryOrder) {
        for (const NamedOrder& order : everyOrder(shape_.degrees())) {
            offer(fillInTurn(sequenceOf(shape_, order.fastestFirst), sizes_));
            offer(packBlocks(shape_, order.fastestFirst, sizes_));
        }
    }
    best_ = starts_.front();
    isMatrix_ = start != nullptr && best_.nodeOfRank == *start;
    if (isMatrix_) method_ = "every level matrix";
}

void Solver::improveStarts() {
    if (shape_.ranks() > kMostForLocalSearch) return;
    for (const Start& start : starts_) {
        if (isProven() || watch_.stops()) return;
        improveFrom(start.nodeOfRank, kFirstEffort);
    }
}

void Solver::improveBest() {
    if (shape_.ranks() > kMostForLocalSearch || isProven()) return;
    improveFrom(best_.nodeOfRank, kSecondEffort);
}

void Solver::improveFrom(const std::vector<int>& nodeOfRank, const Effort& effort) {
    Seating seating(shape_, weights_, nodeOfRank, static_cast<int>(sizes_.size()));
    improve(seating, effort, bound_, watch_);
    if (seating.cost() >= best_.units) return;
    best_ = {seating.cost(), seating.nodeOfRank()};
    method_ = "local search";
    isMatrix_ = false;
}

void Solver::prove(std::uint64_t limit) {
    if (isProven() || watch_.stops()) return;
    ExactAnswer exact =
        branchAndBound(shape_, weights_, sizes_, best_.units, bound_, limit, watch_);
    items_ = exact.items;
    isExhausted_ = exact.isComplete;
    if (!exact.nodeOfRank) return;
    best_.units = unitsOf(shape_, weights_, *exact.nodeOfRank, static_cast<int>(sizes_.size()));
    best_.nodeOfRank = std::move(*exact.nodeOfRank);
    method_ = "branch and bound";
    isMatrix_ = false;
}

/// A matrix has its racks in order already.
void Solver::orderRacks() {
    if (isMatrix_) return;
    best_.nodeOfRank = arrangeRacks(cluster_, shape_, weights_, std::move(best_.nodeOfRank));
}

void Solver::answer(Candidate& candidate) const {
    candidate.nodeOfRank = best_.nodeOfRank;
    candidate.cost = costOf(shape_, weights_, best_.nodeOfRank, static_cast<int>(sizes_.size()));
    candidate.isSumOptimal = isProven();
    candidate.isOptimal = isExhausted_ || best_.units.most <= bound_.most;
    candidate.bound = {weights_.bytes(bound_.most), weights_.bytes(bound_.sum)};
    if (candidate.isOptimal) candidate.bound.most = candidate.cost.most;
    if (candidate.isSumOptimal) candidate.bound.sum = candidate.cost.sum;
    candidate.bound.sum = std::min(candidate.bound.sum, candidate.cost.sum);
    candidate.method = method_;
    if (best_.units.most <= bound_.most) {
        candidate.method += "; the lower bound is reached";
    } else if (isExhausted_) {
        candidate.method +=
            "; branch and bound over " + std::to_string(items_) + " items left nothing better";
    }
}

}  // namespace

Result<Candidate> searchAt(const Cluster& cluster, const Degrees& degrees, const AxisBytes& bytes,
                           const std::vector<int>* start, const Watch& watch) {
    const Result<Weights> weights = weightsOf(degrees, bytes);
    if (!weights.ok()) return weights.status();
    const Shape shape(degrees);
    Solver solver(cluster, shape, *weights, watch);
    solver.begin(start);
    solver.improveStarts();
    solver.prove(kFirstLimit);
    solver.improveBest();
    solver.prove(kSecondLimit);
    solver.orderRacks();
    Candidate candidate;
    candidate.degrees = degrees;
    candidate.bytes = bytes;
    solver.answer(candidate);
    return candidate;
}

}  // namespace isthmus::scheduler
